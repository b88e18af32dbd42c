package hooktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// swallows is an effect that does not look at the error of its statement.
func swallows(ctx context.Context, tx engine.Tx, _ engine.Event) error {
	_, _ = tx.ExecContext(ctx, "INSERT INTO no_such_table VALUES (1)") //nolint:errcheck // that is the mistake
	return nil
}

// PostgreSQL ends the transaction with the statement, so nothing is applied. The others
// take back the statement alone.
func TestEffectSwallowsAFailure(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = swallows
		_, err := s.fire(t.Context(), s.m, "finish")
		s.idle()
		if s.name != "postgres" {
			s.must(err)
			s.row("done", 2)
			return
		}
		if err == nil {
			s.Error("the call succeeded")
		}
		s.row("open", 1)
		if len(s.said) != 0 {
			s.Errorf("after ran: %v", s.said)
		}
		s.effect = nil
		_, err = s.fire(t.Context(), s.m, "finish")
		s.must(err)
		s.row("done", 2)
	})
}

func TestEffectSwallowsAFailureInsideTheCallersTransaction(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = swallows
		tx := s.begin()
		_, err := s.fire(t.Context(), s.m.In(tx), "finish")
		if s.name != "postgres" {
			s.must(err)
			s.must(tx.Commit())
			s.row("done", 2)
			return
		}
		if err == nil {
			s.Error("the call succeeded")
		}
		s.must(tx.Rollback())
		s.row("open", 1)
	})
}

func TestEffectErrorLeavesTheCallersTransactionUsable(t *testing.T) {
	onEach(t, func(s *site) {
		no := errors.New("no")
		s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			_, err := s.m.In(tx).Create(ctx, engine.Row{"id": "inner"})
			return errors.Join(err, fmt.Errorf("ledger: %w", no))
		}
		tx := s.begin()
		_, err := s.m.In(tx).Create(t.Context(), engine.Row{"id": "before"})
		s.must(err)
		_, err = s.fire(t.Context(), s.m.In(tx), "finish")
		var e *engine.Error
		if !errors.Is(err, no) || !errors.As(err, &e) || e.Transition != "finish" || e.ID != "j" {
			s.Errorf("the effect's error is %v", err)
		}
		_, err = s.m.In(tx).Create(t.Context(), engine.Row{"id": "later"})
		s.must(err)
		s.must(tx.Commit())
		s.row("open", 1)
		for id, there := range map[string]bool{"before": true, "inner": false, "later": true} {
			if _, err := s.m.Get(t.Context(), id); (err == nil) != there {
				s.Errorf("%s: %v", id, err)
			}
		}
	})
}

// The row moves while the guard runs: the CAS finds that, and the guard is asked again,
// once, about the row as it is now.
func TestGuardIsAskedOncePerAttempt(t *testing.T) {
	onEach(t, func(s *site) {
		var seen []int64
		s.guard = func(ctx context.Context, e engine.Event) error {
			seen = append(seen, e.Entity.Version)
			if len(seen) > 1 {
				return nil
			}
			_, err := s.fire(ctx, s.m, "note", engine.WithKey("meanwhile"))
			return err
		}
		res, err := s.fire(t.Context(), s.m, "finish", engine.WithKey("f"))
		s.must(err)
		if fmt.Sprint(seen) != "[1 2]" || s.effects.Load() != 1 || res.Version != 3 {
			s.Errorf("the guard saw versions %v, effects ran %d times, the result is %+v", seen, s.effects.Load(), res)
		}
		s.row("done", 3)

		// Duplicates of both kinds ask nobody.
		for _, opts := range [][]engine.CallOption{{engine.WithKey("f")}, nil} {
			res, err := s.fire(t.Context(), s.m, "finish", opts...)
			if err != nil || !res.Outcome.Duplicate() {
				s.Errorf("the repeat: %v, %v", res.Outcome, err)
			}
		}
		if s.guards.Load() != 2 || s.effects.Load() != 1 || len(s.said) != 1 {
			s.Errorf("for duplicates hooks ran: %d guards, %d effects, after %v", s.guards.Load(), s.effects.Load(), s.said)
		}
	})
}

// Of calls at once under one key one runs its code to the end.
func TestHooksOfCallsAtOnce(t *testing.T) {
	onEach(t, func(s *site) {
		const callers = 8
		errs := make(chan error, callers)
		for range callers {
			go func() {
				_, err := s.fire(t.Context(), s.m, "finish", engine.WithKey("f"))
				errs <- err
			}()
		}
		for range callers {
			s.must(<-errs)
		}
		s.row("done", 2)
		if len(s.said) != 1 {
			s.Errorf("after ran %v", s.said)
		}
	})
}

// The transaction ended within the effect, as a deadlock or a cut connection ends it:
// whatever the effect's error is, the caller must roll back and begin again.
func TestEffectWhoseTransactionEnded(t *testing.T) {
	for _, cause := range []error{
		errors.New("no"),
		&engine.Fault{Class: engine.ClassRetryable, Err: errors.New("a deadlock")},
		&engine.Fault{Class: engine.ClassUnknown, Err: errors.New("the connection broke")},
	} {
		onEach(t, func(s *site) {
			if s.sql == nil {
				s.Skip("an effect has no way to end a transaction in memory")
			}
			s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
				_, err := tx.ExecContext(ctx, "ROLLBACK")
				s.must(err)
				return fmt.Errorf("posting: %w", cause)
			}
			tx := s.begin()
			_, err := s.fire(t.Context(), s.m.In(tx), "finish")
			if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), cause.Error()) {
				s.Errorf("%v: the error is %v, want ErrBusy", cause, err)
			}
			_ = tx.Rollback()
			s.row("open", 1)
		})
	}
}

// beside gives the machine over a second store of the same database, whose effect is
// another.
func (s *site) beside(effect func(context.Context, engine.Tx, engine.Event) error) *engine.Machine {
	s.Helper()
	var store engine.Store
	var err error
	switch s.name {
	case "memory":
		s.Skip("there is no second store over the same memory")
	case "sqlite":
		store, err = sqlite.New(s.sql.DB())
	case "postgres":
		store, err = postgres.New(s.sql.DB())
	default:
		store, err = mysql.New(s.sql.DB())
	}
	s.must(err)
	eng, err := engine.New(store)
	s.must(err)
	code := s.code()
	code["on_finish"] = engine.Hook{Effect: effect}
	m, err := eng.Machine(s.Context(), s.m.Definition(), code)
	s.must(err)
	return m
}

// An effect makes a call through another store of the process, in its own transaction. The
// savepoints of both stand on one connection.
func TestEffectsOfTwoStoresInOneTransaction(t *testing.T) {
	no := errors.New("no")
	for _, c := range []struct {
		name         string
		inner, outer error
		state, other string
	}{
		{"both succeed", nil, nil, "done", "done"},
		{"the outer one fails", nil, no, "open", "open"},
		{"the inner one fails", no, nil, "done", "open"},
		{"both fail", no, no, "open", "open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(s *site) {
				guest := s.beside(func(context.Context, engine.Tx, engine.Event) error { return c.inner })
				s.create("guest")
				s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
					if _, err := guest.In(tx).Fire(ctx, "finish", "guest", nil); !errors.Is(err, c.inner) {
						s.Errorf("the inner call: %v, want %v", err, c.inner)
					}
					return c.outer
				}
				tx := s.begin()
				if _, err := s.fire(t.Context(), s.m.In(tx), "finish"); !errors.Is(err, c.outer) {
					s.Errorf("the outer call: %v, want %v", err, c.outer)
				}
				for id, state := range map[string]string{"j": c.state, "guest": c.other} {
					if got, err := s.m.In(tx).Get(t.Context(), id); err != nil || got.State != state {
						s.Errorf("%s is %s, %v, want %s", id, got.State, err, state)
					}
				}
				s.must(tx.Commit())
			})
		})
	}
}
