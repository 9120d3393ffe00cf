// Package commands runs the hook scripts that people have: a process, or a
// POST, per call, as a hooks.json says. Files come in two forms, Claude Code's
// and one of this shape with names, policies and limits per rule (see
// [Parse]). A script gets the payload in the shape that it was written for,
// Claude Code's, whoever the agent is, and its exit status and output become a
// decision (see output.go).
//
// Files of the organisation, the config and the user become hooks of a
// generation ([File.Hooks]). Those of a project are found by the folder in
// which a session works and run only when a person has trusted them
// ([Projects]).
package commands
