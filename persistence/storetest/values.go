package storetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/engine"
)

// dec makes a decimal of text.
func dec(text string) decimal.Decimal { return decimal.RequireFromString(text) }

func timeOf(v any) time.Time {
	t, _ := v.(time.Time)
	return t
}

// rowOf reads a row of the first machine.
func (e *env) rowOf(id string) engine.Row {
	e.Helper()
	got, err := e.m.Get(e.Context(), id)
	e.must(err)
	return got.Row()
}

// wantValues holds some fields of a row against values.
func (e *env) wantValues(row, want engine.Row) {
	e.Helper()
	for name, v := range want {
		if !sameValue(row[name], v) {
			e.Errorf("field %s is %v (%T), want %v (%T)", name, row[name], row[name], v, v)
		}
	}
}

// sameValue compares canonical values: times by instant and zone, decimals by value,
// JSON by meaning, everything else exactly.
func sameValue(got, want any) bool {
	switch want := want.(type) {
	case time.Time:
		t, ok := got.(time.Time)
		return ok && t.Equal(want) && t.Location() == want.Location()
	case decimal.Decimal:
		d, ok := got.(decimal.Decimal)
		return ok && d.Equal(want)
	case json.RawMessage:
		raw, ok := got.(json.RawMessage)
		return ok && sameJSON(raw, want)
	}
	return reflect.DeepEqual(got, want)
}

func sameJSON(a, b []byte) bool {
	return reflect.DeepEqual(parsedJSON(a), parsedJSON(b))
}

// parsedJSON keeps the text of numbers.
func parsedJSON(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	return v
}

func (e *env) wantJSON(got json.RawMessage, want string) {
	e.Helper()
	if !sameJSON(got, []byte(want)) {
		e.Errorf("JSON is %s, want %s", got, want)
	}
}

// wantRecent: the time is the clock's last one, in UTC, cut to microseconds.
func (e *env) wantRecent(got time.Time) {
	e.Helper()
	want := start.Add(time.Duration(e.ticks.Load()) * time.Second).UTC().Truncate(time.Microsecond)
	if d := want.Sub(got); d < 0 || d > 5*time.Second || got.Location() != time.UTC || got.Nanosecond() != want.Nanosecond() {
		e.Errorf("time is %v, want about %v", got, want)
	}
}

// wantNothing: neither a row nor a journal entry of the first machine exists.
func (e *env) wantNothing() {
	e.Helper()
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	journal, err := e.b.Journal(e.Context(), e.m.Definition())
	e.must(err)
	if len(rows)+len(journal) != 0 {
		e.Errorf("left behind: rows %v, journal %v", rows, journal)
	}
}
