package hooktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// exec runs statements beside the machine.
func (s *site) exec(texts ...string) {
	s.Helper()
	for _, text := range texts {
		_, err := s.sql.DB().ExecContext(s.Context(), text)
		s.must(err)
	}
}

// ends gives an effect that ignores an error which ended its transaction, and goes on. On
// MariaDB that is a deadlock, the first time; on the others it is so every time.
func (s *site) ends(runs *int) func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
	s.Helper()
	s.exec("CREATE TABLE ledger (id varchar(20))")
	end := func(ctx context.Context, tx engine.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO lim VALUES (1)")
		return err
	}
	switch s.name {
	case "sqlite":
		s.exec("CREATE TABLE lim (n int)", "CREATE TRIGGER lim_full BEFORE INSERT ON lim BEGIN SELECT RAISE(ROLLBACK, 'lim is full'); END")
	case "postgres":
		s.exec("CREATE TABLE lim (n int CONSTRAINT lim_full CHECK (n < 0))")
	default:
		s.exec("CREATE TABLE lim (n int PRIMARY KEY, v int)", "INSERT INTO lim VALUES (1, 0), (2, 0)", "CREATE TABLE heavy (n int)")
		end = s.deadlocks
	}
	return func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		*runs++
		if s.name != "mariadb" || *runs == 1 {
			if err := end(ctx, tx); err == nil {
				s.Error("nothing ended the transaction")
			}
		}
		_, _ = tx.ExecContext(ctx, "INSERT INTO ledger VALUES ('j')") //nolint:errcheck // whatever becomes of it
		return nil
	}
}

// deadlocks makes the transaction the victim of one: the other has written more.
func (s *site) deadlocks(ctx context.Context, tx engine.Tx) error {
	s.Helper()
	other, err := s.sql.DB().BeginTxx(s.Context(), nil)
	s.must(err)
	defer other.Rollback() //nolint:errcheck // it only ends
	for _, text := range []string{"INSERT INTO heavy VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9)", "UPDATE lim SET v = 1 WHERE n = 2"} {
		_, err := other.ExecContext(s.Context(), text)
		s.must(err)
	}
	_, err = tx.ExecContext(ctx, "UPDATE lim SET v = 2 WHERE n = 1")
	s.must(err)
	done := make(chan error, 1)
	go func() {
		_, err := other.ExecContext(s.Context(), "UPDATE lim SET v = 1 WHERE n = 1")
		done <- err
	}()
	time.Sleep(200 * time.Millisecond)
	_, err = tx.ExecContext(ctx, "UPDATE lim SET v = 2 WHERE n = 2")
	s.must(<-done)
	return err
}

func (s *site) ledger() (n int) {
	s.Helper()
	s.must(s.sql.DB().GetContext(s.Context(), &n, "SELECT count(*) FROM ledger"))
	return n
}

// In a transaction of the store's own, what the effect does after an error that ended it
// is not committed by itself; and what is the same every time runs once.
func TestEffectIgnoresTheEndOfItsTransaction(t *testing.T) {
	for place, run := range map[string]func(s *site) error{
		"by itself": func(s *site) error {
			_, err := s.fire(s.Context(), s.m, "finish")
			return err
		},
		"InTx": func(s *site) error {
			return s.eng.InTx(s.Context(), func(ctx context.Context, tx engine.Tx) error {
				_, err := s.fire(ctx, s.m.In(tx), "finish")
				return err
			})
		},
		"InTx, ignored": func(s *site) error {
			return s.eng.InTx(s.Context(), func(ctx context.Context, tx engine.Tx) error {
				_, err := s.fire(ctx, s.m.In(tx), "finish")
				if s.name == "mariadb" {
					return err
				}
				return nil
			})
		},
	} {
		t.Run(place, func(t *testing.T) {
			onEach(t, func(s *site) {
				if s.sql == nil {
					s.Skip("an effect has no way to end a transaction in memory")
				}
				runs := 0
				s.effect = s.ends(&runs)
				err := run(s)
				if s.name == "mariadb" {
					s.must(err)
					s.row("done", 2)
					if n := s.ledger(); n != 1 || runs != 2 {
						s.Errorf("%d rows in the ledger after %d runs, want one after two", n, runs)
					}
					return
				}
				if err == nil || errors.Is(err, engine.ErrBusy) || errors.Is(err, engine.ErrUnknownOutcome) || !strings.Contains(err.Error(), "was ignored") {
					s.Errorf("%v: want it fatal, and that it says that an error was ignored", err)
				}
				if s.name == "postgres" && place != "InTx" && !strings.Contains(err.Error(), "lim_full") {
					s.Errorf("%v: want it to say which error", err)
				}
				s.row("open", 1)
				if n := s.ledger(); n != 0 || runs != 1 {
					s.Errorf("%d rows in the ledger after %d runs, want none after one", n, runs)
				}
				s.effect = nil
				_, err = s.fire(s.Context(), s.m, "finish")
				s.must(err)
			})
		})
	}
}

// In a transaction of the caller's nothing can keep it from that. So it is said.
func TestEffectIgnoresTheEndOfTheCallersTransaction(t *testing.T) {
	onEach(t, func(s *site) {
		if s.sql == nil {
			s.Skip("an effect has no way to end a transaction in memory")
		}
		runs := 0
		s.effect = s.ends(&runs)
		tx := s.begin()
		_, err := s.fire(s.Context(), s.m.In(tx), "finish")
		_ = tx.Rollback()
		s.row("open", 1)
		if errors.Is(err, engine.ErrBusy) != (s.name == "mariadb") || err == nil || !strings.Contains(err.Error(), "was ignored") {
			s.Errorf("%v", err)
		}
		if s.name != "postgres" && (s.ledger() != 1 || !strings.Contains(err.Error(), "committed by itself")) {
			s.Errorf("%v, and %d rows in the ledger", err, s.ledger())
		}
		if s.name == "sqlite" && strings.Contains(err.Error(), "nothing was applied") {
			s.Errorf("%v: that is not so", err)
		}
	})
}

// A statement that commits by itself commits the transition with it.
func TestEffectCommitsTheCallersTransaction(t *testing.T) {
	for _, fails := range []error{nil, errors.New("no")} {
		onEach(t, func(s *site) {
			if s.sql == nil {
				s.Skip("an effect has no way to end a transaction in memory")
			}
			s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
				_, err := tx.ExecContext(ctx, "COMMIT")
				s.must(err)
				return fails
			}
			tx := s.begin()
			_, err := s.fire(s.Context(), s.m.In(tx), "finish")
			_ = tx.Rollback()
			s.row("done", 2)
			if err == nil || errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "was applied, and committed") || strings.Contains(err.Error(), "nothing was applied") {
				s.Errorf("%v: want it to say what was done", err)
			}
			if fails != nil && !strings.Contains(err.Error(), fails.Error()) {
				s.Errorf("%v: want it to say %v too", err, fails)
			}
		})
	}
}
