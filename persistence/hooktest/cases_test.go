package hooktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/orders/order"
)

// TestCase06 (statesman#433, django-fsm#255): after a lost race a handle says what it was,
// never what was attempted; loaded again it compares with the new version.
func TestCase06HandleAfterALostRace(t *testing.T) {
	for _, name := range []string{"memory", "sqlite", "postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := &site{T: t, name: name}
			eng, err := engine.New(s.open(order.Definition()))
			s.must(err)
			orders, err := order.New(ctx, eng)
			s.must(err)
			_, err = orders.Create(ctx, order.NewOrder{ID: "o", Amount: 5})
			s.must(err)
			h, err := orders.Load(ctx, "o")
			s.must(err)
			pending := h.(order.OrderPending)
			_, err = orders.Pay(ctx, "o", order.PayArgs{Amount: 5, PaymentRef: "r"})
			s.must(err)
			for range 2 { // no overwriting at the second try either
				if _, err := pending.Cancel(ctx, order.CancelArgs{}); !errors.Is(err, engine.ErrConflict) {
					t.Errorf("the handle that lost got %v", err)
				}
			}
			if r := pending.Result(); r.State != order.StatePending || r.Version != 1 {
				t.Errorf("the handle that lost says %+v", r)
			}
			now, err := pending.Load(ctx)
			s.must(err)
			paid, ok := now.(order.OrderPaid)
			if !ok || paid.Result().Version != 2 {
				t.Fatalf("loaded again it is a %T, %+v", now, now.Result())
			}
			cancelled, err := paid.Cancel(ctx, order.CancelArgs{})
			if err != nil || cancelled.Result().Version != 3 {
				t.Errorf("%+v, %v", cancelled.Result(), err)
			}
			s.idle()
		})
	}
}

// TestCase08 (aasm#536, #241): after runs when the outer transaction has committed, and
// never if it was rolled back.
func TestCase08AfterFollowsTheOuterCommit(t *testing.T) {
	onEach(t, func(s *site) {
		s.told = func(ctx context.Context, _ engine.Event) error {
			row, err := s.m.Get(ctx, "j") // on another connection
			if err == nil && row.State != "done" {
				err = errors.New("the hook sees " + row.State)
			}
			return err
		}
		tx := s.begin()
		res, err := s.fire(t.Context(), s.m.In(tx), "finish")
		s.must(err)
		if res.AfterErr != nil {
			s.Error(res.AfterErr)
		}
		s.must(tx.Rollback())
		if len(s.said) != 0 {
			s.Errorf("after ROLLBACK there ran %v", s.said)
		}
		s.row("open", 1)

		tx = s.begin()
		res, err = s.fire(t.Context(), s.m.In(tx), "finish")
		s.must(err)
		s.must(tx.Commit())
		if len(s.said) != 0 {
			s.Errorf("before AfterCommit there ran %v", s.said)
		}
		for range 2 { // at most once
			s.must(res.AfterCommit(t.Context()))
		}
		if got := strings.Join(s.said, ", "); got != "finish v2" {
			s.Errorf("after ran as %s", got)
		}
		s.row("done", 2)
	})
}

// InTx knows of its commit, so it runs the hooks itself.
func TestCase08InTxRunsAfter(t *testing.T) {
	onEach(t, func(s *site) {
		undo := errors.New("undo")
		for _, end := range []error{undo, nil} {
			err := s.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
				if _, err := s.fire(ctx, s.m.In(tx), "finish"); err != nil {
					return err
				}
				if _, err := s.fire(ctx, s.m.In(tx), "close"); err != nil {
					return err
				}
				if len(s.said) != 0 {
					s.Errorf("before COMMIT there ran %v", s.said)
				}
				return end
			})
			if !errors.Is(err, end) {
				s.Fatal(err)
			}
		}
		s.row("closed", 3)
		if got := strings.Join(s.said, ", "); got != "finish v2, close v3" {
			s.Errorf("after ran as %s", got)
		}
	})
}

// TestCase10 (aasm#312): the text of an error is of the moment it was made.
func TestCase10ErrorSaysWhatWasTrueThen(t *testing.T) {
	onEach(t, func(s *site) {
		_, err := s.fire(t.Context(), s.m, "retry")
		if !errors.Is(err, engine.ErrNotAllowed) {
			s.Fatal(err)
		}
		said := err.Error()
		for _, transition := range []string{"finish", "fail"} { // now retry would be possible
			_, err := s.fire(t.Context(), s.m, transition)
			s.must(err)
		}
		var e *engine.Error
		if !errors.As(err, &e) || e.Machine != "job" || e.Transition != "retry" || e.ID != "j" || e.State != "open" || e.Version != 1 || !slices.Contains(e.Allowed, "finish") || slices.Contains(e.Allowed, "retry") {
			s.Errorf("the fields are %+v", e)
		}
		if err.Error() != said || !strings.Contains(said, "job.retry") || !strings.Contains(said, `"j"`) || !strings.Contains(said, "open") {
			s.Errorf("it said %q, and says %q", said, err)
		}
	})
}

// Can promises something of now alone, so it locks nothing: it works where nothing can be
// locked, and keeps nobody from the row.
func TestCanLocksNothing(t *testing.T) {
	onEach(t, func(s *site) {
		if s.sql == nil {
			s.Skip("there is no read-only transaction in memory")
		}
		// SQLite's driver knows no read-only transaction, but the store has a pool of them.
		for _, options := range []*sql.TxOptions{{ReadOnly: true}, {}, {Isolation: sql.LevelRepeatableRead, ReadOnly: true}, {Isolation: sql.LevelRepeatableRead}} {
			if s.name == "sqlite" && options.Isolation != sql.LevelDefault {
				continue
			}
			tx, err := s.sql.Reader().BeginTx(t.Context(), options)
			s.must(err)
			m := s.m.In(tx)
			for transition, want := range map[string]error{"finish": nil, "close": nil, "retry": engine.ErrNotAllowed} {
				if err := m.Can(t.Context(), "j", transition, nil); !errors.Is(err, want) {
					s.Errorf("%+v: Can(%s) = %v, want %v", options, transition, err, want)
				}
			}
			if err := m.Can(t.Context(), "nobody", "close", nil); !errors.Is(err, engine.ErrNotFound) {
				s.Errorf("%+v: Can of a row that is not there: %v", options, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait/2)
			if _, err := s.fire(ctx, s.m, "note", engine.WithKey(fmt.Sprint(options))); err != nil {
				s.Errorf("%+v: after Can in a transaction that is open: %v", options, err)
			}
			cancel()
			s.must(tx.Rollback())
		}
	})
}

// A handle of a row that stands at any version, as programs made it that know none.
func TestHandleAtAnyVersion(t *testing.T) {
	for _, name := range []string{"memory", "sqlite", "postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := &site{T: t, name: name}
			eng, err := engine.New(s.open(order.Definition()))
			s.must(err)
			orders, err := order.New(ctx, eng)
			s.must(err)
			for _, version := range []int64{0, -1, -7} {
				id := fmt.Sprint("o", version)
				if s.mem != nil {
					s.must(s.mem.Put(ctx, order.Definition(), engine.Row{"id": id, "version": version, "amount": 5}))
				} else {
					_, err := orders.Create(ctx, order.NewOrder{ID: id, Amount: 5})
					s.must(err)
					for _, text := range []string{"DELETE FROM fsm_journal", fmt.Sprintf("UPDATE orders SET version = %d WHERE id = '%s'", version, id)} {
						_, err := s.sql.DB().ExecContext(ctx, text)
						s.must(err)
					}
				}
				h, err := orders.Load(ctx, id)
				s.must(err)
				pending := h.(order.OrderPending)
				paid, err := pending.Pay(ctx, order.PayArgs{Amount: 5, PaymentRef: "r"})
				s.must(err)
				if r := paid.Result(); r.Outcome != engine.Applied || r.Version != version+1 {
					t.Errorf("from version %d: %+v", version, r)
				}
				if _, err := pending.Cancel(ctx, order.CancelArgs{}); !errors.Is(err, engine.ErrConflict) {
					t.Errorf("from version %d the handle that is behind got %v", version, err)
				}
				again, err := pending.Pay(ctx, order.PayArgs{Amount: 5, PaymentRef: "r"})
				if err != nil || again.Result().Outcome != engine.AlreadyReached {
					t.Errorf("from version %d the repeat: %+v, %v", version, again.Result(), err)
				}
				shipped, err := paid.Ship(ctx)
				if err != nil || shipped.Result().Version != version+2 {
					t.Errorf("from version %d: %+v, %v", version, shipped.Result(), err)
				}
			}
			s.idle()
		})
	}
}
