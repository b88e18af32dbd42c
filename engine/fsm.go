package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/looplab/fsm"

	"github.com/fsmgen/fsmgen/definitions"
)

// FSM is the in-memory machine of looplab/fsm, for code that speaks it.
type FSM = fsm.FSM

// NewFSM gives the definition as a looplab machine standing in state. Its events
// are the transitions; a transition that can lead from one state to several
// targets has one event per target, called "transition→target".
//
// looplab overwrites a duplicate (event, source) pair silently; here it is an error.
func NewFSM(def *definitions.Machine, state string) (*FSM, error) {
	if _, ok := def.State(state); !ok {
		return nil, fmt.Errorf("engine: machine %s has no state %q", def.Name, state)
	}
	type edge struct{ event, src string }
	seen := map[edge]string{}
	var events fsm.Events
	for i := range def.Transitions {
		t := &def.Transitions[i]
		for src, targets := range t.Targets() {
			for _, dst := range targets {
				event := t.Name
				if len(targets) > 1 {
					event += "→" + dst
				}
				if old, dup := seen[edge{event, src}]; dup {
					return nil, fmt.Errorf("engine: machine %s: transition %s leaves %q twice, to %q and to %q", def.Name, event, src, old, dst)
				}
				seen[edge{event, src}] = dst
				events = append(events, fsm.EventDesc{Name: event, Src: []string{src}, Dst: dst})
			}
		}
	}
	return fsm.NewFSM(state, events, nil), nil
}

// verifyWithFSM holds the compiled table against looplab's own view of the same
// definition: every edge must be possible there. It runs once per machine; the
// hot path uses the table alone, which costs no lock and no allocation.
func (r *Rules) verifyWithFSM() error {
	f, err := NewFSM(r.def, r.def.Initial[0])
	if err != nil {
		return err
	}
	for i := range r.transitions {
		t := &r.transitions[i]
		for src, targets := range t.def.Targets() {
			f.SetState(src)
			for _, dst := range targets {
				event := t.def.Name
				if len(targets) > 1 {
					event += "→" + dst
				}
				if !f.Can(event) || !t.sources[r.byName[src]] {
					return fmt.Errorf("engine: machine %s: transition %s is not possible from %q although the definition says so", r.def.Name, event, src)
				}
			}
		}
	}
	return nil
}

// guardWithFSM asks a guard in the life cycle of a looplab machine that has this one
// edge: a `before` callback that cancels is a veto. The instance is used once; after
// an error or a panic it could not be used again.
//
// looplab takes a context that has ended for an event that failed, so it is not shown the
// caller's: whether that has ended is for whoever asks to look.
func guardWithFSM(ctx context.Context, event, src, dst string, guard func(context.Context) error) (veto, _ error) {
	f := fsm.NewFSM(src, fsm.Events{{Name: event, Src: []string{src}, Dst: dst}}, fsm.Callbacks{
		"before_" + event: func(_ context.Context, e *fsm.Event) {
			if err := guard(ctx); err != nil {
				e.Cancel(err)
			}
		},
	})
	err := f.Event(context.WithoutCancel(ctx), event)
	var canceled fsm.CanceledError
	var same fsm.NoTransitionError
	switch {
	case errors.As(err, &canceled):
		return canceled.Err, nil
	case errors.As(err, &same): // a move of a state onto itself
		return nil, same.Err
	}
	return nil, err
}
