package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// work is one variant that is measured.
type work struct {
	name string
	// floor names the work its rate is compared with: "update" or "update hot".
	floor string
	// do makes the n-th call of a caller on one of the rows the caller has to itself.
	do func(ctx context.Context, row int, n int) error
	// hot: all callers use row 0.
	hot bool
}

// rate is what one work did with one number of callers.
type rate struct {
	perSecond float64
	p50, p99  time.Duration
}

// table holds the medians: per work and number of callers.
type table struct {
	works   []work
	callers []int
	rates   map[string]map[int]rate
}

// measure runs all works in turn, round by round, so that whatever else the machine
// does meets all of them alike.
func measure(ctx context.Context, works []work, s settings) (*table, error) {
	t := &table{works: works, callers: s.callers, rates: map[string]map[int]rate{}}
	for _, callers := range s.callers {
		rounds := map[string][]rate{}
		for range s.rounds {
			for _, w := range works {
				r, err := once(ctx, w, callers, s)
				if err != nil {
					return nil, fmt.Errorf("%s, %d callers: %w", w.name, callers, err)
				}
				rounds[w.name] = append(rounds[w.name], r)
			}
		}
		for name, all := range rounds {
			if t.rates[name] == nil {
				t.rates[name] = map[int]rate{}
			}
			t.rates[name][callers] = median(all)
		}
	}
	return t, nil
}

// once runs one work for one round.
func once(ctx context.Context, w work, callers int, s settings) (rate, error) {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	took := make([][]time.Duration, callers)
	start := time.Now()
	end := start.Add(s.round)
	for c := range callers {
		wg.Go(func() {
			for n := 0; ; n++ {
				began := time.Now()
				if began.After(end) || failed.Load() != nil {
					return
				}
				row := c + callers*(n%max(1, s.rows/callers))
				if w.hot {
					row = 0
				}
				if err := w.do(ctx, row, n); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				took[c] = append(took[c], time.Since(began))
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return rate{}, *err
	}
	return summary(slices.Concat(took...), time.Since(start)), nil
}

func summary(took []time.Duration, whole time.Duration) rate {
	if len(took) == 0 {
		return rate{}
	}
	slices.Sort(took)
	return rate{float64(len(took)) / whole.Seconds(), took[len(took)/2], took[len(took)*99/100]}
}

// median takes the middle of each figure by itself.
func median(all []rate) rate {
	pick := func(of func(rate) float64) float64 {
		values := make([]float64, len(all))
		for i, r := range all {
			values[i] = of(r)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return rate{
		pick(func(r rate) float64 { return r.perSecond }),
		time.Duration(pick(func(r rate) float64 { return float64(r.p50) })),
		time.Duration(pick(func(r rate) float64 { return float64(r.p99) })),
	}
}
