package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/faultproxy"
)

// TestFrozenWithoutDeadline: a connection of which nothing comes any more is given up also
// where the caller's context never ends, whatever waits on it.
func TestFrozenWithoutDeadline(t *testing.T) {
	ctx := context.Background() //nolint:usetesting // one that never ends is the point
	for name, call := range map[string]func(r *rig, freeze func()) error{
		"a call": func(r *rig, freeze func()) error {
			freeze()
			_, err := r.m.Fire(ctx, "add", "1", engine.Args{"by": 1}, engine.WithKey("k"))
			return err
		},
		"a read": func(r *rig, freeze func()) error {
			freeze()
			if _, err := r.m.Get(ctx, "1"); err != nil && !errors.Is(err, engine.ErrBusy) {
				return err
			}
			return nil
		},
		"a call in a transaction": func(r *rig, freeze func()) error {
			runs := 0
			return r.eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
				if runs++; runs == 1 {
					freeze()
				}
				_, err := r.m.In(tx).Fire(ctx, "add", "1", engine.Args{"by": 1}, engine.WithKey("k"))
				return err
			})
		},
		"COMMIT": func(r *rig, freeze func()) error {
			err := r.eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
				defer freeze()
				_, err := r.m.In(tx).Fire(ctx, "add", "1", engine.Args{"by": 1}, engine.WithKey("k"))
				return err
			})
			if !errors.Is(err, engine.ErrUnknownOutcome) {
				return errors.Join(errors.New("want ErrUnknownOutcome"), err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, proxy, _ := proxied(t, counter, 1, WithStatementTimeout(400*time.Millisecond), WithLockTimeout(100*time.Millisecond), WithWait(400*time.Millisecond))
			r.create(t, "1", nil)
			done := make(chan error, 1)
			go func() {
				done <- call(r, func() {
					proxy.Freeze()
					time.AfterFunc(100*time.Millisecond, func() { proxy.Set(faultproxy.Plan{}) }) // for new connections
				})
			}()
			select {
			case err := <-done:
				check(t, err)
			case <-time.After(10 * time.Second):
				t.Error("it still waits after 10 s")
				proxy.CutAll()
				<-done
			}
		})
	}
}

// TestPatience: how long an answer may take is what the server may take for a statement,
// and a little more.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		params string
		opts   []Option
		want   time.Duration
	}{
		{"", nil, 35 * time.Second},
		{"", []Option{WithStatementTimeout(time.Second), WithWait(time.Second)}, 2 * time.Second},
		{"", []Option{WithStatementTimeout(0)}, 0},
		{"statement_timeout=60000", nil, 65 * time.Second},
		{"statement_timeout=2min", nil, 125 * time.Second},
		{"statement_timeout=0", nil, 0},
		{"options='-c statement_timeout=1s'", nil, 0},
		{"statement_timeout=soon", nil, 0},
	} {
		config, err := pgx.ParseConfig("host=localhost " + c.params)
		check(t, err)
		o, err := apply(c.opts)
		check(t, err)
		o.settings(config)
		if got := o.patience(config); got != c.want {
			t.Errorf("%q: %v, want %v", c.params, got, c.want)
		}
	}
}
