package protocol

// Outcome says what became of one hook's turn in a call. The list is closed;
// trail, degraded, metrics and the record all use it.
type Outcome string

// It answered: the outcome is the verb.
const (
	OutcomeContinue  Outcome = "continue"
	OutcomeAllow     Outcome = "allow"
	OutcomeModify    Outcome = "modify"
	OutcomeRespond   Outcome = "respond"
	OutcomeAsk       Outcome = "ask"
	OutcomeDeny      Outcome = "deny"
	OutcomeInject    Outcome = "inject"
	OutcomeAbortTurn Outcome = "abort_turn"
	OutcomeHardAbort Outcome = "hard_abort"
)

// No answer came: the entry's fail policy decides.
const (
	OutcomeTimeout     Outcome = "timeout"
	OutcomeCrash       Outcome = "crash"
	OutcomeSpawnFailed Outcome = "spawn_failed"
	OutcomeStarting    Outcome = "starting"
	OutcomeBreakerOpen Outcome = "breaker_open"
	OutcomePanic       Outcome = "panic"
	OutcomeHookError   Outcome = "hook_error"
)

// An answer came that can't be read or not be believed: denies, whatever the
// fail policy says.
const (
	OutcomeGarbage          Outcome = "garbage"
	OutcomeBadAnswer        Outcome = "bad_answer"
	OutcomeOversize         Outcome = "oversize"
	OutcomeCanaryFailed     Outcome = "canary_failed"
	OutcomeUntrustedChanged Outcome = "untrusted_changed"
)

// Load: denies, whatever the fail policy says.
const (
	OutcomeOverloaded    Outcome = "overloaded"
	OutcomeChainDeadline Outcome = "chain_deadline"
)

// It had no say.
const (
	OutcomeCancelled    Outcome = "cancelled"
	OutcomeNotRun       Outcome = "not_run" // legal only when the answer is a deny or an abort
	OutcomeLimitReached Outcome = "limit_reached"
	OutcomeAsync        Outcome = "async"
	OutcomeShadow       Outcome = "shadow"
)

// Outcomes returns the whole list.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeContinue, OutcomeAllow, OutcomeModify, OutcomeRespond, OutcomeAsk, OutcomeDeny, OutcomeInject, OutcomeAbortTurn, OutcomeHardAbort,
		OutcomeTimeout, OutcomeCrash, OutcomeSpawnFailed, OutcomeStarting, OutcomeBreakerOpen, OutcomePanic, OutcomeHookError,
		OutcomeGarbage, OutcomeBadAnswer, OutcomeOversize, OutcomeCanaryFailed, OutcomeUntrustedChanged,
		OutcomeOverloaded, OutcomeChainDeadline,
		OutcomeCancelled, OutcomeNotRun, OutcomeLimitReached, OutcomeAsync, OutcomeShadow,
	}
}

// NoAnswer reports whether the hook gave none, so that its fail policy decides.
func (o Outcome) NoAnswer() bool {
	switch o {
	case OutcomeTimeout, OutcomeCrash, OutcomeSpawnFailed, OutcomeStarting, OutcomeBreakerOpen, OutcomePanic, OutcomeHookError:
		return true
	}
	return false
}

// AlwaysDenies reports whether the outcome closes the gate whatever the fail
// policy: strictness and load must never turn a gate open.
func (o Outcome) AlwaysDenies() bool {
	switch o {
	case OutcomeGarbage, OutcomeBadAnswer, OutcomeOversize, OutcomeCanaryFailed, OutcomeUntrustedChanged,
		OutcomeOverloaded, OutcomeChainDeadline:
		return true
	}
	return false
}

// Failed reports whether the hook's turn counts as a failure.
func (o Outcome) Failed() bool { return o.NoAnswer() || o.AlwaysDenies() }
