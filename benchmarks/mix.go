package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fsmgen/fsmgen/engine"
)

func isNotAllowed(err error) bool { return errors.Is(err, engine.ErrNotAllowed) }

// mixWorks is what a busy service sends: 10 % misses, 5 % duplicate keys, 2 % calls
// whose context has ended, the rest applied under a key.
func mixWorks(ctx context.Context, db *database, n int) ([]work, error) {
	m, err := db.machine(ctx, "bench_mix", n, true)
	if err != nil {
		return nil, err
	}
	all := rows(n)
	last := make([]string, n)
	return []work{{name: "engine, the mix", floor: floorUpdate, do: func(ctx context.Context, i, k int) error {
		r := &all[i]
		switch p := (k*37 + i) % 100; {
		case p < 10:
			wrong := "light"
			if !r.lit {
				wrong = "douse"
			}
			_, err := m.FireValues(ctx, wrong, r.id, nil, engine.WithVersion(r.version+7))
			if err != nil && !errors.Is(err, engine.ErrConflict) && !isNotAllowed(err) {
				return err
			}
			return nil
		case p < 15 && last[i] != "":
			transition := "douse" // the transition that led here
			if r.lit {
				transition = "light"
			}
			res, err := m.FireValues(ctx, transition, r.id, nil, engine.WithKey(last[i]))
			if err == nil && res.Outcome != engine.Replayed {
				err = fmt.Errorf("%s under a key that was seen: %+v", transition, res)
			}
			return err
		case p < 17:
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := m.FireValues(ended, "touch", r.id, nil); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a call with a dead context: %w", err)
			}
			return nil
		}
		last[i] = newKey()
		return call(ctx, m, r, engine.WithKey(last[i]))
	}}}, nil
}
