package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// matrix tries every transition in every state that can be reached.
func (w *walker) matrix(ctx context.Context) (faults []string) {
	for _, s := range w.def.States {
		p, ok := w.search.reached[s.Name]
		if !ok {
			continue // coverage names the edges that are missing
		}
		v, err := w.start(ctx, p)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		for i := range w.def.Transitions {
			if err := w.cell(ctx, v, &w.def.Transitions[i]); err != nil {
				faults = append(faults, fmt.Sprintf("%s in state %s: %v", w.def.Transitions[i].Name, s.Name, err))
			}
		}
	}
	return faults
}

// cell tries one transition on a row in one state: taking it needs a row of its own,
// everything else leaves the row as it is.
func (w *walker) cell(ctx context.Context, v *visit, t *definitions.Transition) error {
	targets := w.graph.targets(v.state, t.Name)
	if len(targets) == 0 {
		return v.impossible(ctx, t)
	}
	for _, to := range targets {
		s, ok := w.search.step(v.plan, edge{t.Name, v.state, to})
		if !ok || !w.canRepeat(v.plan.then(s)) {
			continue
		}
		if err := v.m.Can(ctx, v.id, t.Name, argsOf(w.def, s)); err != nil {
			return fmt.Errorf("Can says of a call that fits: %w", err)
		}
		if _, err := w.start(ctx, v.plan.then(s)); err != nil {
			return err
		}
	}
	return nil
}

// impossible makes a call that looplab/fsm does not allow. It changes nothing; and it
// succeeds only as a repeat of one that may have been applied.
func (v *visit) impossible(ctx context.Context, t *definitions.Transition) error {
	s := step{edge: edge{transition: t.Name}, args: v.search.candidates(plan{initial: v.state, row: v.values}, t)[0]}
	res, err := v.fire(ctx, v.m, s, v.key(t.Name)...)
	if check := v.check(ctx); check != nil {
		return fmt.Errorf("a call that is not possible changed the row: %w", check)
	}
	if v.search.repeats(v.plan, t, s.args) { // its key is that of a call on the way
		if err == nil && res.Outcome != engine.Replayed || err != nil && !errors.Is(err, engine.ErrMismatch) {
			return fmt.Errorf("a seen key is answered %s", answer(res, err))
		}
		return nil
	}
	switch {
	case err == nil && !res.Outcome.Duplicate():
		return fmt.Errorf("%v, although no edge leaves the state", res.Outcome)
	case err == nil && !v.mayRepeat(t):
		return fmt.Errorf("%v, although it was never applied", res.Outcome)
	case err != nil && !errors.Is(err, engine.ErrNotAllowed) && !(v.mayRepeat(t) && errors.Is(err, engine.ErrMismatch)):
		return fmt.Errorf("%w, want ErrNotAllowed", err)
	}
	if can := v.m.Can(ctx, v.id, t.Name, argsOf(v.def, s)); (can == nil) != (err == nil) {
		return fmt.Errorf("Can says %s, the call %s", answer(res, can), answer(res, err))
	}
	return nil
}

// mayRepeat reports whether a call may count as a repeat of an earlier one.
func (v *visit) mayRepeat(t *definitions.Transition) bool {
	if t.Key.Declared() || t.Duplicates == definitions.DuplicatesRefuse {
		return false
	}
	own := slices.ContainsFunc(v.taken, func(e edge) bool { return e.transition == t.Name })
	if t.Duplicates == definitions.DuplicatesOwn {
		return own
	}
	target := slices.ContainsFunc(v.graph.edges, func(e edge) bool { return e.transition == t.Name && e.to == v.state })
	return own || target || v.def.PassedBy(t)[v.state]
}

// answer is what a call said, for a message.
func answer(res engine.Result, err error) string {
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return fmt.Sprintf("%v (%s → %s), now in %s at version %d", res.Outcome, res.From, res.To, res.State, res.Version)
}
