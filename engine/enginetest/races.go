package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fsmgen/fsmgen/engine"
)

// race is one way in which a call meets another, or itself.
type race struct {
	name string
	run  func(ctx context.Context, w *walker, p plan) error
}

var races = []race{
	{"twice", twice},
	{"at once", atOnce},
	{"stale version", staleVersion},
	{"after a rollback", afterRollback},
	{"lost acknowledgement", lostAcknowledgement},
}

// twice: a call that is repeated is answered from what is there, and changes nothing.
func twice(ctx context.Context, w *walker, p plan) error {
	v, s, err := w.before(ctx, p)
	if err != nil {
		return err
	}
	version, opts := v.version, v.key(s.transition)
	if len(opts) == 0 {
		opts = []engine.CallOption{engine.WithVersion(version)}
	}
	res, err := v.fire(ctx, v.m, s, opts...)
	if err != nil {
		return err
	}
	if err := v.took(ctx, s, res); err != nil {
		return err
	}
	again, err := v.fire(ctx, v.m, s, opts...)
	if check := v.check(ctx); check != nil {
		return fmt.Errorf("the repeat changed something: %w", check)
	}
	return w.repeated(s, again, err)
}

// repeated judges the answer to a call that was applied before.
func (w *walker) repeated(s step, res engine.Result, err error) error {
	t, _ := w.def.Transition(s.transition)
	switch {
	case w.def.Journal.Enabled: // its key was seen
		if err != nil || res.Outcome != engine.Replayed || res.From != s.from || res.To != s.to {
			return fmt.Errorf("the repeat is answered %s; want Replayed", answer(res, err))
		}
	case err == nil && res.Outcome.Duplicate() && res.State == s.to:
	case errors.Is(err, engine.ErrConflict): // the target is a source as well
	case errors.Is(err, engine.ErrNotAllowed) && t.Duplicates != "accept":
	default:
		return fmt.Errorf("the repeat is answered %s; want a duplicate", answer(res, err))
	}
	return nil
}

// atOnce: of equal calls that meet, one is applied.
func atOnce(ctx context.Context, w *walker, p plan) error {
	v, s, err := w.before(ctx, p)
	if err != nil {
		return err
	}
	opts := v.key(s.transition)
	if !w.def.Journal.Enabled {
		opts = []engine.CallOption{engine.WithVersion(v.version)}
	}
	const callers = 4
	var results [callers]engine.Result
	var errs [callers]error
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() { results[i], errs[i] = v.fire(ctx, v.m, s, opts...) })
	}
	group.Wait()
	winner := -1
	for i := range callers {
		switch {
		case errs[i] == nil && results[i].Outcome == engine.Applied && winner >= 0:
			return errors.New("two of the calls at once were applied")
		case errs[i] == nil && results[i].Outcome == engine.Applied:
			winner = i
		default:
			if err := w.repeated(s, results[i], errs[i]); err != nil {
				return err
			}
		}
	}
	if winner < 0 {
		return errors.New("none of the calls at once was applied")
	}
	return v.took(ctx, s, results[winner])
}

// staleVersion: a call for a version that is not the row's changes nothing.
func staleVersion(ctx context.Context, w *walker, p plan) error {
	v, s, err := w.before(ctx, p)
	if err != nil {
		return err
	}
	for _, version := range []int64{v.version - 1, v.version + 1} {
		res, err := v.fire(ctx, v.m, s, append(v.key(s.transition), engine.WithVersion(version))...)
		if !errors.Is(err, engine.ErrConflict) {
			return fmt.Errorf("a call for version %d of a row at version %d is answered %s", version, v.version, answer(res, err))
		}
		if err := v.check(ctx); err != nil {
			return fmt.Errorf("a call for version %d changed the row: %w", version, err)
		}
	}
	return v.take(ctx, s)
}

// afterRollback: what a transaction took back was never there.
func afterRollback(ctx context.Context, w *walker, p plan) error {
	v, s, err := w.before(ctx, p)
	if err != nil {
		return err
	}
	undo := errors.New("undo")
	err = w.eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
		res, err := v.fire(ctx, v.m.In(tx), s, v.key(s.transition)...)
		switch {
		case err != nil:
			return err
		case res.Outcome != engine.Applied || res.State != s.to:
			return fmt.Errorf("inside a transaction: %s", answer(res, nil))
		}
		return undo
	})
	if !errors.Is(err, undo) {
		return fmt.Errorf("inside a transaction: %w", err)
	}
	if err := v.check(ctx); err != nil {
		return fmt.Errorf("after ROLLBACK: %w", err)
	}
	return v.take(ctx, s)
}

// lostAcknowledgement: the call was applied, and whoever waited for the answer never
// got it. The engine asks again, and the row has moved once.
func lostAcknowledgement(ctx context.Context, w *walker, p plan) error {
	v, s, err := w.before(ctx, p)
	if err != nil {
		return err
	}
	_, m, err := w.machine(&deaf{Store: w.store})
	if err != nil {
		return err
	}
	res, err := v.fire(ctx, m, s, v.key(s.transition)...)
	if w.def.Journal.Enabled {
		if err != nil {
			return fmt.Errorf("the engine did not settle it: %w", err)
		}
		return v.took(ctx, s, res)
	}
	if err == nil && res.State == s.to || errors.Is(err, engine.ErrUnknownOutcome) {
		return v.took(ctx, s, engine.Result{ID: v.id, From: s.from, To: s.to, State: s.to, Version: v.version + 1, Outcome: engine.Applied})
	}
	return fmt.Errorf("without a journal: %s", answer(res, err))
}
