package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fsmgen/fsmgen/engine"
)

func concurrencyChecks() []check {
	return []check{
		{name: "of 16 callers exactly one applies", run: concurrentWinner},
		{name: "of 16 callers that name the version exactly one applies", run: concurrentVersion},
		{name: "ship and cancel at once: one wins, the other is told why", run: concurrentRivals},
		{name: "100 duplicates of one callback", run: concurrentCallbacks},
		{name: "one key at once: applied once, replayed to the others", run: concurrentKey},
		{name: "one key for two transitions at once", run: concurrentKeyTwice},
		{name: "one row, many requests: each is applied", run: concurrentHotRow},
		{name: "many creators of one row", run: concurrentCreate},
		{name: "64 callers fire and read", run: concurrentMixed},
	}
}

// answer is the result of one of several calls at once.
type answer struct {
	res engine.Result
	err error
}

// atOnce runs n calls that start together.
func atOnce(n int, call func(i int) (engine.Result, error)) []answer {
	out := make([]answer, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i].res, out[i].err = call(i)
		})
	}
	close(start)
	wg.Wait()
	return out
}

// count tallies answers by outcome; errors that match none of kinds fail the test.
func (e *env) count(answers []answer, allowed ...error) (outcomes map[engine.Outcome]int, refused int) {
	e.Helper()
	outcomes = map[engine.Outcome]int{}
	for _, a := range answers {
		if a.err == nil {
			outcomes[a.res.Outcome]++
			continue
		}
		ok := false
		for _, kind := range allowed {
			ok = ok || errors.Is(a.err, kind)
		}
		if !ok {
			e.Fatalf("a caller was told: %v", a.err)
		}
		refused++
	}
	return outcomes, refused
}

func concurrentWinner(e *env) {
	e.open(order)
	for range rounds(15, 400) {
		id := e.fresh()
		e.create(engine.Row{"id": id, "amount": 1})
		answers := atOnce(16, func(i int) (engine.Result, error) {
			return e.m.Fire(e.Context(), "pay", id, engine.Args{"payment_ref": fmt.Sprint(i)})
		})
		outcomes, _ := e.count(answers)
		if outcomes[engine.Applied] != 1 || outcomes[engine.AlreadyReached] != 15 {
			e.Fatalf("outcomes are %v", outcomes)
		}
		row := e.rowOf(id)
		for i, a := range answers {
			if a.res.Version != 2 || a.res.State != "paid" {
				e.Fatalf("answer %d is %+v", i, a.res)
			}
			if a.res.Outcome == engine.Applied && row["payment_ref"] != fmt.Sprint(i) {
				e.Fatalf("caller %d applied, the row was written by %v", i, row["payment_ref"])
			}
		}
		e.wantJournal(id, "", "pay")
	}
}

func concurrentVersion(e *env) {
	e.open(ticket)
	id := e.create(engine.Row{"id": "t"}).ID
	for round := range rounds(15, 400) {
		version := int64(round + 1)
		answers := atOnce(16, func(i int) (engine.Result, error) {
			return e.m.Fire(e.Context(), "touch", id, engine.Args{"note": fmt.Sprint(round, "-", i)}, engine.WithVersion(version))
		})
		outcomes, refused := e.count(answers, engine.ErrConflict)
		if outcomes[engine.Applied] != 1 || refused != 15 {
			e.Fatalf("outcomes are %v, %d conflicts", outcomes, refused)
		}
		e.wantRow(id, "open", version+1)
	}
}

func concurrentRivals(e *env) {
	e.open(order)
	for range rounds(15, 400) {
		id := e.fresh()
		e.create(engine.Row{"id": id, "amount": 1})
		e.apply("pay", id, engine.Args{"payment_ref": "x"})
		names := []string{"ship", "cancel"}
		answers := atOnce(2, func(i int) (engine.Result, error) { return e.m.Fire(e.Context(), names[i], id, nil) })
		outcomes, refused := e.count(answers, engine.ErrNotAllowed)
		if outcomes[engine.Applied] != 1 || refused != 1 {
			e.Fatalf("outcomes are %v, %d refused", outcomes, refused)
		}
		winner, loser := answers[0], answers[1]
		if winner.err != nil {
			winner, loser = loser, winner
		}
		detail := e.wantError(loser.err, engine.ErrNotAllowed)
		if detail.State != winner.res.To || detail.Version != 3 || winner.res.From != "paid" {
			e.Fatalf("the winner made %+v, the loser was told %+v", winner.res, detail)
		}
	}
}

func concurrentCallbacks(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	answers := atOnce(100, func(int) (engine.Result, error) {
		return e.m.Fire(e.Context(), "pay", "o", engine.Args{"payment_ref": "wx-1"})
	})
	outcomes, _ := e.count(answers)
	if outcomes[engine.Applied] != 1 || outcomes[engine.AlreadyReached] != 99 {
		e.Errorf("outcomes are %v", outcomes)
	}
	e.wantJournal("o", "", "pay")
}

func concurrentKey(e *env) {
	e.open(ticket)
	for round := range rounds(4, 60) {
		id := e.fresh()
		e.create(engine.Row{"id": id})
		answers := atOnce(30, func(int) (engine.Result, error) {
			return e.m.Fire(e.Context(), "touch", id, engine.Args{"note": "n"}, engine.WithKey(fmt.Sprint("k", round)))
		})
		outcomes, _ := e.count(answers)
		if outcomes[engine.Applied] != 1 || outcomes[engine.Replayed] != 29 {
			e.Fatalf("outcomes are %v", outcomes)
		}
		e.wantRow(id, "open", 2)
	}
}

func concurrentKeyTwice(e *env) {
	e.open(order)
	for range rounds(10, 100) {
		id := e.fresh()
		e.create(engine.Row{"id": id, "amount": 1})
		answers := atOnce(8, func(i int) (engine.Result, error) {
			if i%2 == 0 {
				return e.m.Fire(e.Context(), "pay", id, engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
			}
			return e.m.Fire(e.Context(), "cancel", id, nil, engine.WithKey("k"))
		})
		outcomes, refused := e.count(answers, engine.ErrKeyReused)
		if outcomes[engine.Applied] != 1 || outcomes[engine.Replayed] != 3 || refused != 4 {
			e.Fatalf("outcomes are %v, %d refused", outcomes, refused)
		}
	}
}

func concurrentHotRow(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	const callers = 16
	each := rounds(5, 50)
	seen := sync.Map{}
	answers := atOnce(callers, func(i int) (res engine.Result, err error) {
		for j := range each {
			if res, err = e.m.Fire(e.Context(), "touch", "t", engine.Args{"note": fmt.Sprint(i, "-", j)}); err != nil {
				return res, err
			}
			if other, twice := seen.LoadOrStore(res.Version, i); twice {
				return res, fmt.Errorf("callers %v and %d were both told version %d", other, i, res.Version)
			}
		}
		return res, nil
	})
	e.count(answers)
	e.wantRow("t", "open", int64(1+callers*each))
}

func concurrentCreate(e *env) {
	e.open(order)
	for range rounds(8, 100) {
		id := e.fresh()
		answers := atOnce(16, func(i int) (engine.Result, error) {
			return e.m.Create(e.Context(), engine.Row{"id": id, "amount": 7 + i/8}) // two requests, eight times each
		})
		outcomes, refused := e.count(answers, engine.ErrMismatch)
		if outcomes[engine.Applied] != 1 || outcomes[engine.AlreadyReached] != 7 || refused != 8 {
			e.Fatalf("outcomes are %v, %d refused", outcomes, refused)
		}
		e.wantJournal(id, "")
	}
}

// concurrentMixed: versions only rise for a reader, and every answer is one of the
// engine's own.
func concurrentMixed(e *env) {
	e.open(ticket)
	const callers, rows = 64, 8
	each := rounds(6, 60)
	for i := range rows {
		e.create(engine.Row{"id": fmt.Sprint(i)})
	}
	answers := atOnce(callers, func(i int) (engine.Result, error) {
		id := fmt.Sprint(i % rows)
		var last int64
		for j := range each {
			var err error
			switch (i + j) % 4 {
			case 0:
				_, err = e.m.Fire(e.Context(), "hold", id, engine.Args{"by": fmt.Sprint(i)})
			case 1:
				_, err = e.m.Fire(e.Context(), "release", id, nil)
			case 2:
				if _, err = e.m.Fire(e.Context(), "touch", id, engine.Args{"note": fmt.Sprint(j)}); errors.Is(err, engine.ErrNotAllowed) {
					err = nil
				}
			case 3:
				_, err = e.m.Journal(e.Context(), id)
			}
			if err != nil && !errors.Is(err, engine.ErrNotAllowed) {
				return engine.Result{}, err
			}
			got, err := e.m.Get(e.Context(), id)
			if err != nil || got.Version < last {
				return engine.Result{}, fmt.Errorf("Get after version %d: %+v, %w", last, got, err)
			}
			last = got.Version
		}
		return engine.Result{}, nil
	})
	e.count(answers)
}
