package hooktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// foreign are errors of a network that is not the database's, which look like its own.
var foreign = map[string]error{
	"EOF":     fmt.Errorf("Post \"http://pay\": %w", io.EOF),
	"reset":   fmt.Errorf("Post: %w", &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
	"refused": fmt.Errorf("Post: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
	"unknown": fmt.Errorf("the other store: %w", engine.ErrUnknownOutcome),
}

// TestErrorOfAnotherNetwork: what broke is not this transaction's connection, so neither
// fn nor the effect runs again, and the error is its own.
func TestErrorOfAnotherNetwork(t *testing.T) {
	onEach(t, func(s *site) {
		for name, failing := range foreign {
			s.effects.Store(0)
			s.effect = func(context.Context, engine.Tx, engine.Event) error { return failing }
			once := func(what string, err error) {
				if !errors.Is(err, failing) || errors.Is(err, engine.ErrBusy) || s.effects.Load() != 1 {
					s.Errorf("%s: %s: %v after %d runs, want its own error after one", name, what, err, s.effects.Load())
				}
				s.effects.Store(0)
			}
			_, err := s.fire(t.Context(), s.m, "finish")
			once("an effect", err)
			once("an effect in InTx", s.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
				_, err := s.fire(ctx, s.m.In(tx), "finish")
				return err
			}))
			once("InTx", s.eng.InTx(t.Context(), func(context.Context, engine.Tx) error {
				s.effects.Add(1)
				return failing
			}))
			s.row("open", 1)
		}
	})
}

// TestOwnConnectionBreaks: here it is the transaction's own, which the server has rolled
// back. The whole runs again.
func TestOwnConnectionBreaks(t *testing.T) {
	breaks := map[string]string{"postgres": "SELECT pg_terminate_backend(pg_backend_pid())", "mariadb": "KILL CONNECTION_ID()"}
	onEach(t, func(s *site) {
		text, ok := breaks[s.name]
		if !ok {
			s.Skip("it has no connection that breaks")
		}
		runs := 0
		s.must(s.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
			if _, err := s.fire(ctx, s.m.In(tx), "finish"); err != nil {
				return err
			}
			if runs++; runs < 3 {
				_, _ = tx.ExecContext(ctx, text)          //nolint:errcheck // it breaks
				_, err := tx.ExecContext(ctx, "SELECT 1") // on what is broken
				return err
			}
			return nil
		}))
		if runs != 3 {
			s.Errorf("fn ran %d times, want 3", runs)
		}
		s.row("done", 2)
	})
}
