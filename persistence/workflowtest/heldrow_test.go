package workflowtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
)

// TestHeldRowIsWaitedForOnce: what waits for a row that somebody holds waits for as long
// as the store says, also with an effect and within InTx, and not as long again at each
// of its tries.
func TestHeldRowIsWaitedForOnce(t *testing.T) {
	const lockWait = time.Second
	for name, open := range map[string]func(t *testing.T) (*persistence.Store, error){
		"postgres": func(t *testing.T) (*persistence.Store, error) {
			t.Helper()
			return postgres.Open(t.Context(), servertest.PostgresSchema(t), postgres.WithLockTimeout(lockWait))
		},
		"mariadb": func(t *testing.T) (*persistence.Store, error) {
			t.Helper()
			return mysql.Open(t.Context(), servertest.MariaDBDatabase(t).FormatDSN(), mysql.WithLockWait(lockWait))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			check(t, err)
			t.Cleanup(func() { closeIdle(t, store) })
			def := parse(t, wrapping)
			check(t, store.Migrate(t.Context(), def))
			eng, err := engine.New(store)
			check(t, err)
			ran := 0
			m, err := eng.Machine(t.Context(), def, engine.Code{"inner": {Effect: func(context.Context, engine.Tx, engine.Event) error { ran++; return nil }}})
			check(t, err)
			_, err = m.Create(t.Context(), engine.Row{"id": "x"})
			check(t, err)
			holder, err := store.DB().BeginTxx(t.Context(), nil)
			check(t, err)
			defer holder.Rollback() //nolint:errcheck // it only ends
			_, err = holder.ExecContext(t.Context(), "UPDATE wraps SET version = version + 1 WHERE id = 'x'")
			check(t, err)
			runs := 0
			for what, call := range map[string]func() error{
				"with an effect": func() error { _, err := m.Fire(t.Context(), "go", "x", nil); return err },
				"in InTx": func() error {
					return eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
						runs++
						_, err := m.In(tx).Fire(ctx, "go", "x", nil)
						return err
					})
				},
			} {
				since := time.Now()
				if err := call(); !errors.Is(err, engine.ErrBusy) {
					t.Errorf("%s: %v, want ErrBusy", what, err)
				}
				if took := time.Since(since); took < lockWait/2 || took > 4*lockWait {
					t.Errorf("%s: it gave up after %v, want little more than %v", what, took, lockWait)
				}
			}
			if runs != 1 || ran != 0 {
				t.Errorf("InTx ran %d times, the effect %d times", runs, ran)
			}
		})
	}
}

// TestTransactionEndedInside: fn of InTx commits by itself. Where that succeeds what it did
// is there, and doing it again would be twice.
func TestTransactionEndedInside(t *testing.T) {
	onEach(t, databases(), func(s *site) {
		_, err := s.m.Create(s.t.Context(), engine.Row{"id": "x"})
		check(s.t, err)
		runs := 0
		err = s.eng.InTx(s.t.Context(), func(ctx context.Context, tx engine.Tx) error {
			runs++
			if _, err := s.m.In(tx).Fire(ctx, "add", "x", nil, engine.WithKey(s.t.Name())); err != nil {
				return err
			}
			own, _ := tx.(*sqlx.Tx)
			return own.Commit()
		})
		if runs != 1 || err == nil || errors.Is(err, engine.ErrBusy) {
			s.t.Errorf("%v after %d runs, want an error that is not ErrBusy after one", err, runs)
		}
		if s.name == "sqlite" { // it refuses that COMMIT
			s.holds("x", "a", 1, 1)
			return
		}
		s.holds("x", "a", 2, 2)
	}, parse(t, attacked))
}
