package bench

// one makes a call again and again beside its floors: F_sock always, and
// pipes × F_pipe. It returns the work and the sum of the floors.
func (r *run) one(n, pipes int, hooks object, line []byte, more ...*series) (work *series, floor float64, err error) {
	return r.oneWith("off", n, pipes, hooks, line, more...)
}

// oneWith does so with a record in this mode.
func (r *run) oneWith(record string, n, pipes int, hooks object, line []byte, more ...*series) (work *series, floor float64, err error) {
	socket, stop, err := r.socketFloor(line)
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	floors := append(more, socket)
	var pipe *series
	if pipes > 0 {
		if pipe, stop, err = r.pipeFloor(line); err != nil {
			return nil, 0, err
		}
		defer stop()
		floors = append(floors, pipe)
	}
	h, err := r.startWith(record, hooks)
	if err != nil {
		return nil, 0, err
	}
	defer h.stop()
	c, err := h.dial()
	if err != nil {
		return nil, 0, err
	}
	defer c.w.Close()
	work = newSeries(c.asking(line, continues))
	if err := r.inTurn(n, work, floors...); err != nil {
		return nil, 0, err
	}
	for _, f := range floors {
		floor += f.p(0.5)
	}
	if pipes > 1 {
		floor += float64(pipes-1) * pipe.p(0.5)
	}
	return work, floor, nil
}

// inHouse are "hooks" with the built-in one.
func inHouse() object {
	return object{"builtins": object{"bench": object{"intercept": []string{"before_tool", "before_llm"}}}}
}

// noHook is T0.
func noHook(r *run) ([]Row, error) {
	hooks := object{"processes": object{"other": r.hook("continue", object{"match": object{"tools": []string{"another"}}})}}
	work, floor, err := r.one(r.Calls, 0, hooks, toolLine("bash"))
	if err != nil {
		return nil, err
	}
	return []Row{overFloor(work, floor, 2.5)}, nil
}

// inProcess is T1. What the record costs in its usual mode is there to look at.
func inProcess(r *run) ([]Row, error) {
	work, floor, err := r.one(r.Calls, 0, inHouse(), toolLine("bash"))
	if err != nil {
		return nil, err
	}
	recorded, recordedFloor, err := r.oneWith("batch", r.Calls, 0, inHouse(), toolLine("bash"))
	if err != nil {
		return nil, err
	}
	look := overFloor(recorded, recordedFloor, 0)
	look.Work, look.AtLeast = "the same, with each decision recorded", true
	kept, keptFloor, err := r.oneWith("batch", r.Calls, 0, wellKept(), toolLine("bash"))
	if err != nil {
		return nil, err
	}
	all := overFloor(kept, keptFloor, 6)
	all.Work = "the same, with policy, metrics and the record"
	return []Row{overFloor(work, floor, 3), look, all}, nil
}

// wellKept are "hooks" with the built-in one beside what an operator would have.
func wellKept() object {
	rules := []object{{"tools": []string{"rm"}, "action": "deny"}, {"kinds": []string{"file_write"}, "action": "approve"}}
	return object{"builtins": object{
		"bench":   object{"intercept": []string{"before_tool", "before_llm"}},
		"policy":  object{"config": object{"default": "auto", "rules": rules}},
		"metrics": object{},
	}}
}

// oneChild is T2.
func oneChild(r *run) ([]Row, error) {
	work, floor, err := r.one(r.Calls, 1, object{"processes": object{"gate": r.hook("continue", nil)}}, toolLine("bash"))
	if err != nil {
		return nil, err
	}
	return []Row{overFloor(work, floor, 3)}, nil
}

// threeChildren is T3.
func threeChildren(r *run) ([]Row, error) {
	hooks := object{"a": r.hook("continue", nil), "b": r.hook("continue", nil), "c": r.hook("continue", nil)}
	work, floor, err := r.one(r.Calls, 3, object{"processes": hooks}, toolLine("bash"))
	if err != nil {
		return nil, err
	}
	return []Row{overFloor(work, floor, 3)}, nil
}

// largeCall is T4.
func largeCall(r *run) ([]Row, error) {
	params := modelParams(1 << 20)
	hooks := object{"processes": object{"gate": r.hook("continue", nil)}}
	work, floor, err := r.one(r.share(20, 20), 1, hooks, callLine("hook.before_llm", params), scanFloor(params))
	if err != nil {
		return nil, err
	}
	return []Row{overFloor(work, floor, 3)}, nil
}

// allocations is T11.
func allocations(r *run) ([]Row, error) {
	h, err := r.start(inHouse())
	if err != nil {
		return nil, err
	}
	defer h.stop()
	small, err := h.allocated(toolLine("bash"), r.Calls)
	if err != nil {
		return nil, err
	}
	params := modelParams(1 << 20)
	large, err := h.allocated(callLine("hook.before_llm", params), r.share(100, 20))
	if err != nil {
		return nil, err
	}
	return []Row{
		{Work: "allocations per call, in-process hook", Ratio: round(small.objects, 1), Unit: "per call", Target: 60},
		// Read once, and at most one copy.
		{Work: "bytes allocated per call of 1 MB", Ratio: round(large.bytes/float64(len(params)), 2), Unit: "× its size", Target: 2},
	}, nil
}

type perCall struct{ objects, bytes float64 }

// allocated says what a call costs the whole daemon.
func (h *house) allocated(line []byte, n int) (perCall, error) {
	c, err := h.dial()
	if err != nil {
		return perCall{}, err
	}
	defer c.w.Close()
	calls := newSeries(c.asking(line, continues))
	if err := calls.some(h.run.ctx, max(n/10, 10)); err != nil {
		return perCall{}, err
	}
	before, err := h.usage()
	if err != nil {
		return perCall{}, err
	}
	if err := calls.some(h.run.ctx, n); err != nil {
		return perCall{}, err
	}
	after, err := h.usage()
	if err != nil {
		return perCall{}, err
	}
	return perCall{float64(after.Objects-before.Objects) / float64(n), float64(after.Bytes-before.Bytes) / float64(n)}, nil
}
