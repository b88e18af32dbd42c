package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// A context that ends while a guard runs is no veto: nobody said no, and nothing was sent.
func TestContextEndsWhileAGuardRuns(t *testing.T) {
	no := errors.New("no")
	var end func()
	var says func(ctx context.Context) error
	s := &fakeStore{}
	m := machineWith(t, s, orderWith("", `  touch: {from: paid, to: paid, guard: ok}`, "\n  send: {from: paid, to: shipped, guard: ok}"),
		Code{"ok": {Guard: func(ctx context.Context, _ Event) error { end(); return says(ctx) }}})
	s.inspect = []sight{{snapshot: m.rowIn("paid", 2)}}
	s.apply = []reply{{change: m.change("paid", "paid", 3)}}
	calls := map[string]func(ctx context.Context, transition string) error{
		"Fire": func(ctx context.Context, transition string) error {
			_, err := m.Fire(ctx, transition, "o-1", nil)
			return err
		},
		"Can": func(ctx context.Context, transition string) error { return m.Can(ctx, "o-1", transition, nil) },
	}
	for name, call := range calls {
		for _, transition := range []string{"send", "touch"} {
			for text, c := range map[string]struct {
				says func(ctx context.Context) error
				veto bool
			}{
				"nothing":             {func(context.Context) error { return nil }, false},
				"what the context is": {func(ctx context.Context) error { return fmt.Errorf("reading: %w", ctx.Err()) }, false},
				"no":                  {func(context.Context) error { return no }, true},
			} {
				ctx, cancel := context.WithCancel(context.Background())
				end, says = cancel, c.says
				err := call(ctx, transition)
				if c.veto {
					if !errors.Is(err, ErrRejected) || !errors.Is(err, no) {
						t.Errorf("%s %s, the guard says %s: %v, want its veto", name, transition, text, err)
					}
				} else if err != context.Canceled { //nolint:errorlint // its own error, alone
					t.Errorf("%s %s, the guard says %s: %v, want the context's own error", name, transition, text, err)
				}
			}
		}
	}
	if n := s.count("apply"); n != 0 {
		t.Errorf("%d writes, want none", n)
	}

	// A context of the guard's own is the guard's affair.
	end, says = func() {}, func(context.Context) error { return context.Canceled }
	if err := calls["Fire"](context.Background(), "send"); !errors.Is(err, ErrRejected) {
		t.Errorf("%v, want ErrRejected", err)
	}
}

// Where an attempt went before, the error says what became of it.
func TestContextEndsWhileAGuardRunsAgain(t *testing.T) {
	for _, c := range []struct {
		class Class
		want  error
	}{{ClassRetryable, ErrBusy}, {ClassUnknown, ErrUnknownOutcome}} {
		ctx, cancel := context.WithCancel(context.Background())
		asked := 0
		guard := Hook{Guard: func(context.Context, Event) error {
			if asked++; asked == 2 {
				cancel()
			}
			return nil
		}}
		s := &fakeStore{apply: []reply{{err: &Fault{Class: c.class, Err: errDriver}}}}
		m := machineWith(t, s, orderWith("", `  send: {from: paid, to: shipped, guard: ok}`), Code{"ok": guard})
		s.inspect = []sight{{snapshot: m.rowIn("paid", 2)}}
		_, err := m.Fire(ctx, "send", "o-1", nil)
		if !errors.Is(err, c.want) || !errors.Is(err, context.Canceled) || errors.Is(err, ErrRejected) {
			t.Errorf("class %d: %v, want %v and the context's error", c.class, err, c.want)
		}
		wantSent(t, s, "inspect", "apply", "inspect")
	}
}
