package hooktest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// A guard that moves the row within the transaction makes the call miss, every time.
func TestGuardWritesTheRow(t *testing.T) {
	onEach(t, func(s *site) {
		tx := s.begin()
		s.guard = func(ctx context.Context, e engine.Event) error {
			_, err := s.m.In(tx).Fire(ctx, "note", "j", engine.Args{"text": "x"}, engine.WithKey(string(rune('a'+s.guards.Load()))))
			return err
		}
		_, err := s.fire(s.Context(), s.m.In(tx), "finish")
		if err == nil || !strings.Contains(err.Error(), "guard may_finish") {
			s.Errorf("%v: want it to name the guard", err)
		}
		s.must(tx.Rollback())
	})
}

// Beginning again does not help a transaction that may only read.
func TestReadOnlyTransaction(t *testing.T) {
	onEach(t, func(s *site) {
		if s.sql == nil || s.name == "sqlite" {
			s.Skip("every transaction may write")
		}
		tx, err := s.sql.DB().BeginTxx(s.Context(), &sql.TxOptions{ReadOnly: true})
		s.must(err)
		m := s.m.In(tx)
		s.must(m.Can(s.Context(), "j", "close", nil))
		_, fire := m.Fire(s.Context(), "close", "j", nil)
		s.must(tx.Rollback())
		tx, err = s.sql.DB().BeginTxx(s.Context(), &sql.TxOptions{ReadOnly: true})
		s.must(err)
		_, create := s.m.In(tx).Create(s.Context(), engine.Row{"id": "new"})
		s.must(tx.Rollback())
		tx, err = s.sql.DB().BeginTxx(s.Context(), &sql.TxOptions{ReadOnly: true})
		s.must(err)
		_, read := s.m.In(tx).Fire(s.Context(), "finish", "j", nil) // its row is read under lock first
		s.must(tx.Rollback())
		for call, err := range map[string]error{"Fire": fire, "Create": create, "Fire with Go code": read} {
			text := strings.ToLower(strings.ReplaceAll(err.Error(), " ONLY", "-only"))
			if errors.Is(err, engine.ErrBusy) || !strings.Contains(text, "read-only") {
				s.Errorf("%s: %v, want it fatal", call, err)
			}
		}
	})
}

// What is over is over on every database: there is a new one to be had.
func TestClosedConnection(t *testing.T) {
	onEach(t, func(s *site) {
		if s.sql == nil {
			s.Skip("there are no connections")
		}
		conn, err := s.sql.DB().Conn(s.Context())
		s.must(err)
		s.must(conn.Close())
		if _, err := s.fire(s.Context(), s.m.In(conn), "finish"); !errors.Is(err, engine.ErrBusy) {
			s.Errorf("%v, want ErrBusy", err)
		}
	})
}

// A connection on which nobody has begun a transaction: what was sent has been committed
// statement by statement, where the savepoint does not make a transaction by itself.
func TestConnectionWithoutTransaction(t *testing.T) {
	onEach(t, func(s *site) {
		if s.sql == nil {
			s.Skip("there are no connections")
		}
		_, err := s.fire(s.Context(), s.m, "finish")
		s.must(err)
		conn, err := s.sql.DB().Conn(s.Context())
		s.must(err)
		_, err = s.fire(s.Context(), s.m.In(conn), "fail", engine.WithKey("k"))
		s.must(conn.Close())
		got, getErr := s.m.Get(s.Context(), "j")
		s.must(getErr)
		if got.Version != 3 || (err == nil) != (s.name != "mariadb") {
			s.Errorf("%v, and the row is at version %d", err, got.Version)
		}
		if err != nil && (!errors.Is(err, engine.ErrUnknownOutcome) || !strings.Contains(err.Error(), "was applied, and committed")) {
			s.Errorf("%v: want it to say what was done", err)
		}
	})
}
