package persistence

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// What the three drivers read becomes one canonical value per type.
func TestDecode(t *testing.T) {
	t.Parallel()
	east := noon.In(time.FixedZone("", 8*3600))
	for _, c := range []struct {
		t    expr.Type
		raws []any
		want any
	}{
		{expr.String, []any{"ü", []byte("ü")}, "ü"},
		{expr.Int, []any{int64(-7), "-7", []byte("-7")}, int64(-7)},
		{expr.Int, []any{int64(math.MinInt64), "-9223372036854775808"}, int64(math.MinInt64)},
		{expr.Float, []any{1.5, "1.5", []byte("1.5")}, 1.5},
		{expr.Float, []any{int64(2), 2.0, "2"}, 2.0},
		{expr.Bool, []any{true, int64(1), "true", []byte("1"), "t"}, true},
		{expr.Bool, []any{false, int64(0), "false", []byte("0")}, false},
		{expr.Time, []any{noon, east, noon.Add(999), "2026-03-01T12:00:00.123456Z", []byte("2026-03-01 12:00:00.123456"), "2026-03-01 20:00:00.123456+08:00", "2026-03-01 12:00:00.123456+00"}, noon},
		{expr.Bytes, []any{[]byte("\x00\xff"), "\x00\xff"}, []byte("\x00\xff")},
		{expr.JSON, []any{`{"a":1}`, []byte(`{"a":1}`)}, json.RawMessage(`{"a":1}`)},
		{expr.Decimal, []any{"1.5", []byte("1.500000")}, decimal.RequireFromString("1.5")},
		{expr.Decimal, []any{int64(7), "7"}, decimal.NewFromInt(7)},
	} {
		for _, raw := range c.raws {
			got, err := decode(c.t, raw)
			if err != nil || !expr.Equal(c.t, got, c.want) {
				t.Errorf("%s from %T %v is %v, %v, want %v", c.t, raw, raw, got, err, c.want)
			}
		}
		if got, err := decode(c.t, nil); got != nil || err != nil {
			t.Errorf("%s from NULL is %v, %v", c.t, got, err)
		}
	}
	for typ, raws := range map[expr.Type][]any{
		expr.Int:     {"1.5", "", "x", 1.5, "9223372036854775808"},
		expr.Float:   {"x", "", math.NaN(), math.Inf(1)},
		expr.Bool:    {"x", "", 1.5},
		expr.Time:    {"x", "", int64(7), time.Time{}},
		expr.Decimal: {"x", "", "1e400", 1.5},
	} {
		for _, raw := range raws {
			if got, err := decode(typ, raw); err == nil {
				t.Errorf("%s from %T %v is %v, want an error", typ, raw, raw, got)
			}
		}
	}
}

// Bytes are copied: a driver may use its buffer again.
func TestDecodeCopiesBytes(t *testing.T) {
	t.Parallel()
	for _, typ := range []expr.Type{expr.Bytes, expr.JSON, expr.String} {
		raw := []byte("123")
		got, err := decode(typ, raw)
		if err != nil {
			t.Fatal(err)
		}
		raw[0] = 'x'
		if text := fmt.Sprintf("%s", got); text != "123" {
			t.Errorf("%s shares the driver's buffer: %q", typ, text)
		}
	}
}

// What an inspection found becomes a snapshot: what happened before the row's last
// creation belongs to an earlier row, only keys count for ever.
func TestFillSnapshot(t *testing.T) {
	t.Parallel()
	at := func(version int64) *engine.Entry { return &engine.Entry{Version: version} }
	for _, c := range []struct {
		name                              string
		found                             foundEntries
		own, entered, next, creation, key int64
		undone                            bool
	}{
		{name: "nothing"},
		{name: "a life", found: foundEntries{kindCreation: at(1), kindOwn: at(2), kindEntered: at(3), kindNext: at(2), kindSource: at(1), kindKey: at(2)}, own: 2, entered: 3, next: 2, creation: 1, key: 2},
		{name: "undone", found: foundEntries{kindCreation: at(1), kindOwn: at(2), kindSource: at(4), kindEntered: at(4)}, own: 2, entered: 4, creation: 1, undone: true},
		{name: "its own led into a source", found: foundEntries{kindOwn: at(4), kindSource: at(4), kindEntered: at(4)}, own: 4, entered: 4},
		{name: "an earlier row", found: foundEntries{kindCreation: at(5), kindOwn: at(2), kindSource: at(5), kindEntered: at(5), kindNext: at(3), kindKey: at(2)}, entered: 5, creation: 5, key: 2},
		{name: "not created here", found: foundEntries{kindOwn: at(8), kindEntered: at(8)}, own: 8, entered: 8},
	} {
		var s engine.Snapshot
		c.found.fill(&s)
		for what, pair := range map[string][2]int64{
			"own": {version(s.Own), c.own}, "entered": {version(s.Entered), c.entered}, "next": {version(s.Next), c.next},
			"creation": {version(s.Creation), c.creation}, "key": {version(s.ByKey), c.key},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s is the entry of version %d, want %d", c.name, what, pair[0], pair[1])
			}
		}
		if s.Undone != c.undone {
			t.Errorf("%s: undone is %v", c.name, s.Undone)
		}
	}
}

func version(e *engine.Entry) int64 {
	if e == nil {
		return 0
	}
	return e.Version
}

func TestEntryRow(t *testing.T) {
	t.Parallel()
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: true} }
	row := entryRow{
		seq: sql.NullInt64{Int64: 9, Valid: true}, version: sql.NullInt64{Int64: 2, Valid: true}, transition: text("pay"), from: text("a"), to: text("b"),
		key: text("k"), fingerprint: text("f"), attempt: text("t"), args: text("{}"), at: "2026-03-01T12:00:00.123456Z",
	}
	e, err := row.entry()
	if err != nil {
		t.Fatal(err)
	}
	if e.Seq != 9 || e.Version != 2 || e.Transition != "pay" || e.From != "a" || e.To != "b" || e.Key != "k" || e.Fingerprint != "f" || e.Attempt != "t" ||
		string(e.Args) != "{}" || e.Meta != nil || e.Actor != "" || !e.At.Equal(noon) {
		t.Errorf("entry %+v", e)
	}
	row.at = "never"
	if _, err := row.entry(); err == nil {
		t.Error("a time that is none must be an error")
	}
}
