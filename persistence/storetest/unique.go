package storetest

import (
	"errors"
	"strings"

	"github.com/fsmgen/fsmgen/engine"
)

// invoice is created once per number, whatever its id.
const invoice = `
machine: invoice
table: {name: invoices}
fields:
  number: {type: string}
  region: {type: string, nullable: true}
  batch:  {type: int, nullable: true}
  total:  {type: int, default: 0}
initial: draft
states:
  draft:
  sent: {final: true}
unique: [[number], [region, batch]]
transitions:
  renumber: {from: draft, to: draft, args: {number: string}, set: {number: args.number}}
  send:     {from: draft, to: sent}
`

// parcel and label are two machines over one table.
const parcel = `
machine: parcel
table: {name: parcels, status: state}
fields:
  weight: {type: int}
initial: packed
states:
  packed:
  gone: {final: true}
transitions:
  go: {from: packed, to: gone}
`

const label = `
machine: label
table: {name: parcels, status: label_state}
initial: blank
states:
  blank:
  printed:
transitions:
  print: {from: blank, to: printed}
  peel:  {from: printed, to: blank}
`

func uniqueChecks() []check {
	return []check{
		{name: "a declared key that is taken is the row that has it", run: uniqueCreate},
		{name: "a transition into a declared key that is taken is no conflict", run: uniqueFire},
		{name: "a constraint the definition does not know is returned as it is", run: uniqueUndeclared},
		{name: "two machines over one table share its version", run: uniqueShared},
		{name: "two machines over one table with two journals are refused", run: uniqueJournals},
		{name: "two machines over one status column are refused", run: uniqueColumn},
	}
}

func uniqueCreate(e *env) {
	e.open(invoice)
	e.create(engine.Row{"id": "1", "number": "n-1", "region": "eu", "batch": 1, "total": 5}, engine.WithKey("k"))
	res, err := e.m.Create(e.Context(), engine.Row{"id": "2", "number": "n-1", "region": "eu", "batch": 1, "total": 5})
	e.must(err)
	e.wantResult(res, engine.AlreadyReached, "draft", 1)
	if res.ID != "1" {
		e.Errorf("the result is row %q, want the first", res.ID)
	}
	_, err = e.m.Create(e.Context(), engine.Row{"id": "2", "number": "n-1", "total": 6})
	e.wantError(err, engine.ErrMismatch)
	_, err = e.m.Create(e.Context(), engine.Row{"id": "2", "number": "n-2", "region": "eu", "batch": 1})
	e.wantError(err, engine.ErrMismatch)
	// The key is looked up under the first row too.
	res, err = e.m.Create(e.Context(), engine.Row{"id": "2", "number": "n-1", "region": "eu", "batch": 1, "total": 5}, engine.WithKey("k"))
	e.must(err)
	if res.Outcome != engine.Replayed || res.ID != "1" {
		e.Errorf("under the first row's key: %+v", res)
	}
	// NULL equals nothing, and a part of a key is no key.
	e.create(engine.Row{"id": "3", "number": "n-3", "region": "eu"})
	e.create(engine.Row{"id": "4", "number": "n-4", "region": "eu"})
	e.create(engine.Row{"id": "5", "number": "N-1", "region": "EU", "batch": 1})
	if _, err := e.m.Get(e.Context(), "2"); !errors.Is(err, engine.ErrNotFound) {
		e.Errorf("row 2: %v", err)
	}
	e.wantJournal("2")
}

func (e *env) wantFatal(err error) {
	e.Helper()
	var detail *engine.Error
	if !errors.As(err, &detail) {
		e.Fatalf("error is %v, want one that carries *engine.Error", err)
	}
	for _, kind := range kinds() {
		if errors.Is(err, kind) {
			e.Fatalf("error matches %q: %v", kind, err)
		}
	}
}

func uniqueFire(e *env) {
	e.open(invoice)
	e.create(engine.Row{"id": "1", "number": "n-1"})
	e.create(engine.Row{"id": "2", "number": "n-2"})
	_, err := e.m.Fire(e.Context(), "renumber", "2", engine.Args{"number": "n-1"}, engine.WithKey("k"))
	e.wantFatal(err)
	e.wantRow("2", "draft", 1)
	e.wantJournal("2", "")
	e.wantValues(e.rowOf("2"), engine.Row{"number": "n-2"})
	e.apply("renumber", "2", engine.Args{"number": "n-3"}, engine.WithKey("k"))
	for _, form := range e.h.Features.Forms {
		tx := e.begin(form, 0)
		_, err := e.m.In(tx.Tx).Fire(e.Context(), "renumber", "2", engine.Args{"number": "n-1"})
		e.wantFatal(err)
		e.must(tx.Rollback())
	}
	e.wantRow("2", "draft", 2)
}

func uniqueUndeclared(e *env) {
	b, ok := e.begun(everything).(*SQL)
	e.need(ok, "constraints of somebody else's")
	def := e.m.Definition()
	_, err := b.Beside.ExecContext(e.Context(), "CREATE UNIQUE INDEX somebodys ON "+b.table(def.Table.Name)+" ("+b.Quote("o_int")+")")
	e.must(err)
	for _, id := range []string{"1", "2"} {
		e.create(required(id))
	}
	e.apply("fill", "1", engine.Args{"i": 7})
	_, err = e.m.Fire(e.Context(), "fill", "2", engine.Args{"i": 7})
	e.wantFatal(err)
	row := required("3")
	row["o_int"] = 7
	_, err = e.m.Create(e.Context(), row)
	e.wantFatal(err)
	_, err = e.m.Get(e.Context(), "3")
	e.wantError(err, engine.ErrNotFound)
	e.wantJournal("3")
	e.apply("fill", "2", engine.Args{"i": 8})
}

// begun opens the store and gives its backend.
func (e *env) begun(texts ...string) Backend {
	e.Helper()
	e.open(texts...)
	return e.b
}

func uniqueShared(e *env) {
	e.open(parcel, label)
	labels := e.machines["label"]
	e.create(engine.Row{"id": "p", "weight": 3})
	got, err := labels.Get(e.Context(), "p")
	e.must(err)
	if got.State != "blank" || got.Version != 1 {
		e.Fatalf("the other machine reads %+v", got)
	}
	e.wantResult(e.apply("go", "p", nil, engine.WithKey("k")), engine.Applied, "gone", 2)
	step := func(transition string, outcome engine.Outcome, state string, version int64, opts ...engine.CallOption) engine.Result {
		e.Helper()
		res, err := labels.Fire(e.Context(), transition, "p", nil, opts...)
		e.must(err)
		e.wantResult(res, outcome, state, version)
		return res
	}
	step("print", engine.Applied, "printed", 3, engine.WithKey("k"))
	step("print", engine.AlreadyReached, "printed", 3)
	if res := step("peel", engine.Applied, "blank", 4); res.From != "printed" {
		e.Errorf("peel = %+v", res)
	}
	e.remove("p")
	e.wantResult(e.create(engine.Row{"id": "p", "weight": 3}), engine.Applied, "packed", 5)
	// What was done to the label of the earlier parcel was not done to this one.
	if res := step("peel", engine.AlreadyReached, "blank", 5); res.First != nil {
		e.Errorf("First is %+v, of an earlier row", res.First)
	}
	step("print", engine.Applied, "printed", 6)
}

func uniqueJournals(e *env) {
	e.open(parcel)
	_, err := e.eng.Machine(e.Context(), e.parse(label+"journal: {table: label_log}\n"))
	for _, part := range []string{"machines parcel and label share table parcels", "the journal fsm_journal", "the journal label_log", "name the same table under `journal:`"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			e.Errorf("a second machine with a journal of its own: %v, want an error that says %q", err, part)
		}
	}
}

func uniqueColumn(e *env) {
	e.open(parcel)
	for _, journal := range []string{"", "journal: false\n"} {
		second := e.parse(strings.Replace(label, "label_state", "state", 1) + journal)
		_, err := e.eng.Machine(e.Context(), second)
		for _, part := range []string{"machines parcel and label", "column state of table parcels", "`status:`"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				e.Errorf("a second machine over the column: %v, want an error that says %q", err, part)
			}
		}
	}
}
