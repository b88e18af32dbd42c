package enginetest

import (
	"context"
	"fmt"
	"slices"
)

// Bounds on the paths: a dense graph has more of them than anybody can walk.
const (
	mostPaths = 100
	mostSteps = 1000
)

// paths follows every path from an initial state on which no state comes twice, up to
// its end or the first state that was there before.
func (w *walker) paths(ctx context.Context) (faults []string, note string) {
	all, more := w.graph.paths(w.def.Initial)
	walked, barred, steps := 0, 0, 0
	for _, path := range all {
		if steps > mostSteps {
			more = true
			break
		}
		p, ok := w.search.along(path)
		if !ok || !w.canRepeat(p) {
			barred++
			continue
		}
		walked, steps = walked+1, steps+len(path)
		if _, err := w.start(ctx, p); err != nil {
			faults = append(faults, fmt.Sprintf("on the path %v: %v", path, err))
		}
	}
	note = fmt.Sprintf("%d paths walked", walked)
	if barred > 0 {
		note += fmt.Sprintf("; for %d no row and arguments were found that meet all their conditions", barred)
	}
	if more {
		note += "; there are more than are walked"
	}
	return faults, note
}

// paths lists paths; more says that there are others.
func (g *graph) paths(initial []string) (all [][]edge, more bool) {
	var extend func(path []edge, state string, seen []string)
	extend = func(path []edge, state string, seen []string) {
		again := slices.Contains(seen, state)
		if again || len(g.leave[state]) == 0 {
			if len(path) > 0 {
				all = append(all, slices.Clone(path))
			}
			return
		}
		for _, e := range g.leave[state] {
			if len(all) >= mostPaths {
				more = true
				return
			}
			extend(append(slices.Clip(path), e), e.to, append(slices.Clip(seen), state))
		}
	}
	for _, state := range initial {
		extend(nil, state, nil)
	}
	return all, more
}

// along finds a row and arguments that follow a path to its end.
func (s *search) along(path []edge) (plan, bool) {
	seeds, err := s.seeds()
	if err != nil {
		return plan{}, false
	}
	for _, p := range seeds {
		if p.initial != path[0].from {
			continue
		}
		if p, ok := s.extend(p, path); ok {
			return p, true
		}
	}
	return plan{}, false
}

// extend has the row of a plan take the edges of a path.
func (s *search) extend(p plan, path []edge) (plan, bool) {
	for _, e := range path {
		st, ok := s.step(p, e)
		if !ok {
			return plan{}, false
		}
		p = p.then(st)
	}
	return p, true
}
