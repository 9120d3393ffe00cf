// Package install writes hookd into the settings of coding agents, takes it out
// again, and finds out why an agent does not ask.
//
// Each agent keeps its hooks in another file and another form. [Install] and
// [Uninstall] work out what would change, as a [Plan] that can be shown before
// it is applied. They keep everything in a file that is not hookd's, with its
// order, its formatting and its comments, and refuse a file that they can't
// read. [Examine] is behind "hookd doctor". None of them starts a process or
// speaks to a daemon: what they need of those is handed in.
package install
