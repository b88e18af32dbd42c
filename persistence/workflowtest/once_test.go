package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// invoice is a row to create, with more fields of the caller's.
func invoice(id, number string, cents int, more ...engine.Row) engine.Row {
	row := engine.Row{"id": id, "number": number, "cents": cents}
	for _, m := range more {
		maps.Copy(row, m)
	}
	return row
}

// TestCreateOnce: a row under the same business key is the row.
func TestCreateOnce(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t, m := s.t, s.m
		res, err := m.Create(t.Context(), invoice("1", "N-1", 500), engine.WithKey("k"))
		check(t, err)
		if res.Outcome != engine.Applied || res.ID != "1" {
			t.Fatalf("the first = %+v", res)
		}
		s.again(t, engine.AlreadyReached, "1", "open", invoice("2", "N-1", 500))
		s.again(t, engine.AlreadyReached, "1", "open", invoice("2", "N-1", 500), engine.WithKey("other"))
		s.again(t, engine.Replayed, "1", "open", invoice("2", "N-1", 500), engine.WithKey("k"))
		s.again(t, engine.AlreadyReached, "1", "open", invoice("1", "N-1", 500))
		s.refuseCreate(t, engine.ErrMismatch, invoice("2", "N-1", 501))
		s.refuseCreate(t, engine.ErrMismatch, invoice("2", "N-1", 500, engine.Row{"status": "draft"}))
		s.refuseCreate(t, engine.ErrMismatch, invoice("2", "N-1", 500, engine.Row{"note": "x"}))
		s.refuseCreate(t, engine.ErrMismatch, invoice("1", "N-2", 500))
		s.refuseCreate(t, engine.ErrKeyReused, invoice("2", "N-1", 501), engine.WithKey("k"))
		s.apply(t, m, "send", "1", nil) // writes a field: what counts is how it was created
		s.again(t, engine.AlreadyReached, "1", "sent", invoice("3", "N-1", 500, engine.Row{"note": ""}))
		s.again(t, engine.Replayed, "1", "sent", invoice("3", "N-1", 500), engine.WithKey("k"))
		s.wantRow(t, m, "1", "sent", 2, 2, nil)
		if _, err := m.Get(t.Context(), "2"); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("a duplicate left a row: %v", err)
		}
	}, load(t, "invoice"))
}

func (s *site) again(t testing.TB, outcome engine.Outcome, id, state string, row engine.Row, opts ...engine.CallOption) {
	t.Helper()
	res, err := s.m.Create(context.Background(), row, opts...)
	check(t, err)
	if res.Outcome != outcome || res.ID != id || res.State != state || res.First == nil || res.First.Transition != "" {
		t.Errorf("create %v = %+v, want %v of %s in %s", row, res, outcome, id, state)
	}
}

func (s *site) refuseCreate(t testing.TB, kind error, row engine.Row, opts ...engine.CallOption) {
	t.Helper()
	res, err := s.m.Create(context.Background(), row, opts...)
	if err == nil {
		t.Fatalf("create %v = %+v, want %v", row, res, kind)
	}
	wantError(t, err, kind)
}

// TestCreateOnceOfParts: a key of several fields; NULL is equal to nothing.
func TestCreateOnceOfParts(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		part := func(id string, shop, ext any) engine.Row {
			return invoice(id, "N-"+id, 1, engine.Row{"shop": shop, "ext": ext})
		}
		s.create(t, s.m, part("1", "a", 7))
		s.create(t, s.m, part("2", "a", 8))
		s.create(t, s.m, part("3", "b", 7))
		for i, nulls := range []engine.Row{part("4", "a", nil), part("5", "a", nil), part("6", nil, 7), part("7", nil, nil), part("8", nil, nil)} {
			res, err := s.m.Create(t.Context(), nulls)
			if err != nil || res.Outcome != engine.Applied {
				t.Errorf("NULL %d: %v, %v", i, res.Outcome, err)
			}
		}
		s.refuseCreate(t, engine.ErrMismatch, part("9", "a", 7)) // its number differs
		row := part("9", "a", 7)
		row["number"] = "N-1"
		s.again(t, engine.AlreadyReached, "1", "open", row)
		// A row that somebody else made counts as well, for the fields no transition sets.
		check(t, s.Insert(t.Context(), s.m.Definition(), engine.Row{"id": "x", "status": "open", "version": int64(3), "number": "N-x", "cents": int64(5), "note": "theirs", "shop": "z", "ext": int64(1)}))
		res, err := s.m.Create(t.Context(), invoice("y", "N-x", 5, engine.Row{"shop": "z", "ext": 1}))
		if err != nil || res.Outcome != engine.AlreadyReached || res.ID != "x" || res.Version != 3 {
			t.Errorf("a row made elsewhere: %+v, %v", res, err)
		}
		s.refuseCreate(t, engine.ErrMismatch, invoice("y", "N-x", 6, engine.Row{"shop": "z", "ext": 1}))
	}, load(t, "invoice"))
}

// TestCreateOnceAtOnce: 32 callers, each with an id of its own, make one row.
func TestCreateOnceAtOnce(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		for round := range 3 {
			number := fmt.Sprint("N-", round)
			calls := atOnce(32, func(i int) (engine.Result, error) {
				cents := 1
				if i%4 == 3 {
					cents = 2
				}
				return s.m.Create(context.Background(), invoice(fmt.Sprint("i", round, "-", i), number, cents))
			})
			outcomes := count(t, calls, engine.ErrMismatch)
			if outcomes[engine.Applied] != 1 || outcomes[engine.AlreadyReached]+outcomes[0] != 31 || outcomes[0] != 8 && outcomes[0] != 24 {
				t.Fatalf("outcomes are %v", outcomes)
			}
			ids := map[string]bool{}
			for _, c := range calls {
				if c.err == nil {
					ids[c.ID] = true
				}
			}
			if len(ids) != 1 {
				t.Fatalf("the callers were told of %d rows: %v", len(ids), ids)
			}
		}
	}, load(t, "invoice"))
}

// TestCreateOnceInTx: in a caller's transaction a duplicate is an answer, and the
// transaction goes on. A transition that runs into the key is the caller's fault, and
// no conflict.
func TestCreateOnceInTx(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, invoice("1", "N-1", 1))
		s.create(t, s.m, invoice("2", "N-2", 1))
		tx, err := s.Begin(t.Context(), s.txForm(), 0)
		check(t, err)
		in := &site{t: t, m: s.m.In(tx.Tx)}
		in.again(t, engine.AlreadyReached, "1", "open", invoice("3", "N-1", 1))
		in.refuseCreate(t, engine.ErrMismatch, invoice("3", "N-1", 2))
		in.create(t, in.m, invoice("3", "N-3", 1))
		check(t, tx.Commit())
		s.wantRow(t, s.m, "3", "open", 1, 1, nil)
		_, err = s.m.Fire(t.Context(), "renumber", "2", engine.Args{"number": "N-1"})
		if err == nil {
			t.Fatal("two rows have one number")
		}
		for _, kind := range append(answers(), engine.ErrBusy, engine.ErrUnknownOutcome) {
			if errors.Is(err, kind) {
				t.Errorf("a violated key is %v: %v", kind, err)
			}
		}
		s.wantRow(t, s.m, "2", "open", 1, 1, engine.Row{"number": "N-2"})
	}, load(t, "invoice"))
}
