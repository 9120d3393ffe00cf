package conversation

// Group is a run of messages, from the first to before the end, that only make
// sense together: a call and its results, and what stands between them.
type Group struct{ From, To int }

// Groups cuts messages into groups. Every message is in one, and most are alone.
func Groups(list []Message) []Group {
	// start[i] is the first message that message i can't do without.
	start := make([]int, len(list))
	called := map[string]int{} // where an id was called last; agents use ids again
	for i := range list {
		m := &list[i]
		start[i] = i
		for _, id := range m.results {
			at, ok := called[id]
			if !ok && i > 0 {
				at = i - 1 // whose it is can't be told: the one before
			} else if !ok {
				at = i
			}
			start[i] = min(start[i], at)
		}
		if i > 0 && list[i-1].reasons {
			start[i] = min(start[i], i-1)
		}
		for _, id := range m.calls {
			called[id] = i
		}
	}
	var groups []Group
	for i := range list {
		from := start[i]
		for len(groups) > 0 && groups[len(groups)-1].To > from {
			from = min(from, groups[len(groups)-1].From)
			groups = groups[:len(groups)-1]
		}
		groups = append(groups, Group{from, i + 1})
	}
	return groups
}

// Tail returns from which message on the last n messages stand, and those
// before them that they can't do without.
func Tail(list []Message, n int) int {
	at := max(len(list)-n, 0)
	for _, g := range Groups(list) {
		if g.From < at && at < g.To {
			return g.From
		}
	}
	return at
}
