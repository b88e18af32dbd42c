package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
)

// prepare makes all works of a run.
func prepare(ctx context.Context, db *database, s settings) ([]work, error) {
	works, err := floors(ctx, db, s.rows)
	if err != nil {
		return nil, err
	}
	for _, more := range []func(context.Context, *database, int) ([]work, error){engineWorks, repeatWorks, mixWorks, peerWorks} {
		added, err := more(ctx, db, s.rows)
		if err != nil {
			return nil, err
		}
		for _, w := range added {
			if strings.Contains(w.name, s.only) {
				works = append(works, w)
			}
		}
	}
	return works, nil
}

// call moves a row along its edge and checks the answer.
func call(ctx context.Context, m *engine.Machine, r *row, opts ...engine.CallOption) error {
	transition, _, to := r.edge()
	res, err := m.FireValues(ctx, transition, r.id, nil, opts...)
	if err != nil {
		return err
	}
	if res.Outcome != engine.Applied || res.To != to || res.Version != r.version+1 {
		return fmt.Errorf("%s of %+v: %+v", transition, *r, res)
	}
	r.moved()
	return nil
}

func engineWorks(ctx context.Context, db *database, n int) ([]work, error) {
	var out []work
	for i, v := range []struct {
		name    string
		journal bool
		opts    func(r *row) []engine.CallOption
	}{
		{"engine, bare, version named", false, func(r *row) []engine.CallOption { return []engine.CallOption{engine.WithVersion(r.version)} }},
		{"engine, bare", false, func(*row) []engine.CallOption { return nil }},
		{"engine, journaled", true, func(*row) []engine.CallOption { return nil }},
		{"engine, journaled, caller's key", true, func(*row) []engine.CallOption { return []engine.CallOption{engine.WithKey(newKey())} }},
	} {
		m, err := db.machine(ctx, fmt.Sprintf("bench_engine_%d", i), n, v.journal)
		if err != nil {
			return nil, err
		}
		all := rows(n)
		out = append(out, work{name: v.name, floor: floorUpdate, do: func(ctx context.Context, i, _ int) error {
			return call(ctx, m, &all[i], v.opts(&all[i])...)
		}})
	}
	within, err := inTxWork(ctx, db, n)
	if err != nil {
		return nil, err
	}
	hot, err := hotWorks(ctx, db, n)
	return append(append(out, within), hot...), err
}

// inTxWork makes the call inside a transaction of the caller's.
func inTxWork(ctx context.Context, db *database, n int) (work, error) {
	m, err := db.machine(ctx, "bench_engine_tx", n, true)
	if err != nil {
		return work{}, err
	}
	all := rows(n)
	return work{name: "engine, journaled, in the caller's transaction", floor: floorUpdate, do: func(ctx context.Context, i, _ int) error {
		return db.inTx(ctx, func(tx *sqlx.Tx) error { return call(ctx, m.In(tx), &all[i]) })
	}}, nil
}

func hotWorks(ctx context.Context, db *database, n int) ([]work, error) {
	var out []work
	for i, journal := range []bool{false, true} {
		m, err := db.machine(ctx, fmt.Sprintf("bench_engine_hot_%d", i), n, journal)
		if err != nil {
			return nil, err
		}
		name := "engine, bare, hot row"
		if journal {
			name = "engine, journaled, hot row"
		}
		out = append(out, work{name: name, floor: floorHot, hot: true, do: func(ctx context.Context, _, _ int) error {
			res, err := m.FireValues(ctx, "touch", "row-0", nil)
			if err == nil && res.Outcome != engine.Applied {
				err = fmt.Errorf("touch: %+v", res)
			}
			return err
		}})
	}
	return out, nil
}

// repeatWorks are calls that change nothing: a key that was seen, a target that is
// reached, a transition that is not allowed.
func repeatWorks(ctx context.Context, db *database, n int) ([]work, error) {
	m, err := db.machine(ctx, "bench_repeats", n, true)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if _, err := m.FireValues(ctx, "spend", fmt.Sprintf("row-%d", i), nil, engine.WithKey("once")); err != nil {
			return nil, err
		}
	}
	outcome := func(name string, want engine.Outcome, opts ...engine.CallOption) work {
		return work{name: name, floor: floorUpdate, do: func(ctx context.Context, i, _ int) error {
			res, err := m.FireValues(ctx, "spend", fmt.Sprintf("row-%d", i), nil, opts...)
			if err == nil && res.Outcome != want {
				err = fmt.Errorf("spend: %+v, want %s", res, want)
			}
			return err
		}}
	}
	return []work{
		outcome("engine, duplicate by key", engine.Replayed, engine.WithKey("once")),
		outcome("engine, duplicate by state", engine.AlreadyReached),
		{name: "engine, not allowed", floor: floorUpdate, do: func(ctx context.Context, i, _ int) error {
			_, err := m.FireValues(ctx, "light", fmt.Sprintf("row-%d", i), nil)
			if !isNotAllowed(err) {
				return fmt.Errorf("light: %w", err)
			}
			return nil
		}},
	}, nil
}
