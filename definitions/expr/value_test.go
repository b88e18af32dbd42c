package expr

import (
	"database/sql"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
)

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func at(s string) time.Time {
	tm, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return tm
}

type (
	currency string
	flag     bool
	cents    uint16
	stamp    time.Time
	blob     []byte
)

func ptr[T any](v T) *T { return &v }

func TestCoerceAccepts(t *testing.T) {
	t.Parallel()
	shanghai := time.FixedZone("", 8*3600)
	moment := time.Date(2026, 1, 2, 3, 4, 5, 678901999, shanghai)
	var nilString *string
	var nilTime *time.Time
	for _, c := range []struct {
		t     Type
		scale int
		in    any
		want  any
	}{
		{String, -1, "", ""},
		{String, -1, "支付 'x' $1 ?", "支付 'x' $1 ?"},
		{String, -1, currency("CNY"), "CNY"},
		{String, -1, ptr("a"), "a"},
		{String, -1, ptr(ptr("a")), "a"},
		{String, -1, nilString, nil},
		{String, -1, nil, nil},
		{String, -1, sql.NullString{String: "a", Valid: true}, "a"},
		{String, -1, sql.NullString{}, nil},
		{String, -1, strings.Repeat("x", 5000), strings.Repeat("x", 5000)},
		{Int, -1, int64(math.MinInt64), int64(math.MinInt64)},
		{Int, -1, 7, int64(7)},
		{Int, -1, int8(-7), int64(-7)},
		{Int, -1, uint64(math.MaxInt64), int64(math.MaxInt64)},
		{Int, -1, cents(7), int64(7)},
		{Int, -1, ptr(cents(7)), int64(7)},
		{Int, -1, json.Number("9007199254740993"), int64(9007199254740993)},
		{Float, -1, 1.5, 1.5},
		{Float, -1, math.Copysign(0, -1), 0.0},
		{Float, -1, float32(1.5), 1.5},
		{Float, -1, 1 << 53, float64(1 << 53)},
		{Float, -1, uint64(1 << 63), float64(1 << 63)},
		{Float, -1, json.Number("0.1"), 0.1},
		{Float, -1, json.Number("-0"), 0.0},
		{Bool, -1, true, true},
		{Bool, -1, flag(true), true},
		{Bool, -1, ptr(false), false},
		{Time, -1, moment, time.Date(2026, 1, 1, 19, 4, 5, 678901000, time.UTC)},
		{Time, -1, &moment, time.Date(2026, 1, 1, 19, 4, 5, 678901000, time.UTC)},
		{Time, -1, stamp(moment), time.Date(2026, 1, 1, 19, 4, 5, 678901000, time.UTC)},
		{Time, -1, nilTime, nil},
		{Time, -1, at("0001-01-01T00:00:00.000001Z"), at("0001-01-01T00:00:00.000001Z")},
		{Time, -1, at("9999-12-31T23:59:59.999999999Z"), at("9999-12-31T23:59:59.999999Z")},
		{Time, -1, at("1969-12-31T23:59:59.9999999Z"), at("1969-12-31T23:59:59.999999Z")},
		{Bytes, -1, []byte{0, 255}, []byte{0, 255}},
		{Bytes, -1, []byte(nil), []byte{}},
		{Bytes, -1, blob(nil), []byte{}},
		{Bytes, -1, blob{1}, []byte{1}},
		{Bytes, -1, ptr([]byte{1}), []byte{1}},
		{JSON, -1, json.RawMessage(`{"a":1}`), json.RawMessage(`{"a":1}`)},
		{JSON, -1, []byte(" [1] "), json.RawMessage(`[1]`)},
		{JSON, -1, ptr(json.RawMessage(`1`)), json.RawMessage(`1`)},
		{JSON, -1, map[string]any{"b": 1, "a": nil}, json.RawMessage(`{"a":null,"b":1}`)},
		{JSON, -1, "text", json.RawMessage(`"text"`)},
		{JSON, -1, 5, json.RawMessage(`5`)},
		{JSON, -1, json.RawMessage("null"), nil},
		{JSON, -1, json.RawMessage(nil), nil},
		{JSON, -1, (*int)(nil), nil},
		{JSON, -1, []byte(`"\ud83d\ude00 \\u0000"`), json.RawMessage(`"\ud83d\ude00 \\u0000"`)},
		{Decimal, -1, dec("1.50"), dec("1.5")},
		{Decimal, -1, dec("-999999999999.999999"), dec("-999999999999.999999")},
		{Decimal, -1, dec("0.00"), dec("0")},
		{Decimal, -1, dec("0e400000"), dec("0")},
		{Decimal, -1, dec("1e11"), dec("100000000000")},
		{Decimal, -1, dec("1." + strings.Repeat("0", 40)), dec("1")},
		{Decimal, 2, "12.30", dec("12.3")},
		{Decimal, 0, 12, dec("12")},
		{Decimal, -1, json.Number("0.000001"), dec("0.000001")},
		{Decimal, -1, currency("7.25"), dec("7.25")},
		{Decimal, -1, ptr(dec("7.25")), dec("7.25")},
		{Decimal, -1, decimal.NullDecimal{}, nil},
	} {
		got, err := Coerce(c.t, c.scale, c.in)
		if err != nil {
			t.Errorf("Coerce(%s, %T %v): %v", c.t, c.in, c.in, err)
			continue
		}
		if !Equal(c.t, got, c.want) {
			t.Errorf("Coerce(%s, %T %v) = %#v, want %#v", c.t, c.in, c.in, got, c.want)
		}
		if again, err := Coerce(c.t, c.scale, got); err != nil || !Equal(c.t, again, got) {
			t.Errorf("a coerced value does not coerce to itself: %#v, %v", again, err)
		}
		if d, ok := got.(decimal.Decimal); ok && d.String() != c.want.(decimal.Decimal).String() {
			t.Errorf("%v is not in normal form: %s", c.in, d)
		}
		if tm, ok := got.(time.Time); ok && (tm.Location() != time.UTC || tm.Nanosecond()%1000 != 0) {
			t.Errorf("%v is not in UTC and whole microseconds", tm)
		}
	}
}

func TestCoerceRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t     Type
		scale int
		in    any
		want  string
	}{
		{String, -1, "a\x00b", "U+0000"},
		{String, -1, "a\xffb", "UTF-8"},
		{String, -1, currency("\x00"), "U+0000"},
		{String, -1, 5, "a int, not a string"},
		{String, -1, json.Number("5"), "not a string"},
		{String, -1, []byte("x"), "not a string"},
		{Int, -1, 1.0, "a float64, not an integer"},
		{Int, -1, "5", "a string, not an integer"},
		{Int, -1, uint64(1 << 63), "out of range"},
		{Int, -1, json.Number("1.5"), "not an integer"},
		{Int, -1, json.Number("9223372036854775808"), "out of range"},
		{Int, -1, time.Second, "not an integer"},
		{Int, -1, true, "not an integer"},
		{Float, -1, math.NaN(), "NaN"},
		{Float, -1, math.Inf(-1), "finite"},
		{Float, -1, float32(math.Inf(1)), "finite"},
		{Float, -1, 1<<53 + 1, "exactly"},
		{Float, -1, int64(math.MaxInt64), "exactly"},
		{Float, -1, uint64(math.MaxUint64), "exactly"},
		{Float, -1, json.Number("1e999"), "out of range"},
		{Bool, -1, 1, "not a bool"},
		{Time, -1, time.Time{}, "zero time"},
		{Time, -1, at("0001-01-01T00:00:00.0000009Z"), "zero time"},
		{Time, -1, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "year"},
		{Time, -1, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "year"},
		{Time, -1, time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600)), "year"},
		{Time, -1, "2026-01-01T00:00:00Z", "not a time.Time"},
		{Bytes, -1, "x", "not a []byte"},
		{JSON, -1, []byte("{"), "not valid JSON"},
		{JSON, -1, make(chan int), "JSON"},
		{JSON, -1, []byte(`"\u0000"`), "U+0000"},
		{JSON, -1, "a\x00b", "U+0000"},
		{JSON, -1, []byte(`["\ud800"]`), "surrogate"},
		{JSON, -1, []byte(`"\ud800\u0041"`), "surrogate"},
		{JSON, -1, []byte(`"\udc00"`), "surrogate"},
		{JSON, -1, []byte("\"\xff\""), "UTF-8"},
		{JSON, -1, []byte(`[1e400000]`), "digits"},
		{JSON, -1, []byte(`1e-99999999999999999999`), "digits"},
		{JSON, -1, []byte(strings.Repeat("[", 31) + strings.Repeat("]", 31)), "nested"},
		{Decimal, -1, dec("1e400000000"), "range"},
		{Decimal, -1, dec("1e-400000000"), "digits"},
		{Decimal, -1, dec("1000000000000"), "range"},
		{Decimal, -1, dec("0.0000001"), "6 digits"},
		{Decimal, -1, dec("1." + strings.Repeat("0", 40) + "1"), "6 digits"},
		{Decimal, 2, dec("0.125"), "2 digits"},
		{Decimal, 0, "0.5", "0 digits"},
		{Decimal, -1, 1.5, "a float64, not a decimal"},
		{Decimal, -1, "1_000", "not a decimal"},
		{Decimal, -1, "NaN", "not a decimal"},
		{Decimal, -1, "", "not a decimal"},
		{Decimal, -1, strings.Repeat("1", 1_000_000), "too long"},
		{Decimal, -1, uint64(math.MaxUint64), "out of range"},
		{Duration, -1, time.Second, "no value"},
	} {
		got, err := Coerce(c.t, c.scale, c.in)
		if err == nil || got != nil {
			t.Errorf("Coerce(%s, %T) = %#v, %v, want an error", c.t, c.in, got, err)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("Coerce(%s, %T): %q does not say %q", c.t, c.in, err, c.want)
		}
	}
}

func TestCoerceOfCanonicalValuesDoesNotAllocate(t *testing.T) {
	moment := at("2026-01-02T03:04:05.678901Z").UTC()
	for _, c := range []struct {
		t Type
		v any
	}{
		{String, "some text"},
		{Int, int64(1 << 40)},
		{Float, 1.25},
		{Bool, true},
		{Time, moment},
		{Bytes, []byte("some")},
		{Decimal, dec("12.345")},
		{Decimal, dec("1200")},
	} {
		if n := testing.AllocsPerRun(100, func() { _, _ = Coerce(c.t, -1, c.v) }); n != 0 {
			t.Errorf("Coerce(%s) allocates %v times", c.t, n)
		}
	}
}

func TestCanonicalText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    Type
		v    any
		want string
	}{
		{String, "a:b", "3:a:b"},
		{String, "支", "3:支"},
		{String, "", "0:"},
		{String, nil, "-"},
		{Int, int64(-42), "3:-42"},
		{Float, 0.1, "3:0.1"},
		{Float, 1e21, "5:1e+21"},
		{Bool, true, "4:true"},
		{Time, at("2026-01-02T03:04:05+08:00"), "27:2026-01-01T19:04:05.000000Z"},
		{Bytes, []byte{0, 1}, "2:\x00\x01"},
		{Decimal, dec("1.50"), "3:1.5"},
		{Decimal, dec("-0.000001"), "9:-0.000001"},
		{Decimal, dec("1e3"), "4:1000"},
		{Decimal, dec("-999999999999.999999"), "20:-999999999999.999999"},
		{
			JSON, json.RawMessage(`{"b": [1.0, 1e2, "\u0041<"], "a":{"z":null,"y":true}, "b2":0}`),
			`48:{"a":{"y":true,"z":null},"b":[1.0,1e2,"A<"],"b2":0}`,
		},
		{JSON, json.RawMessage(`{"a":1,"a":{"b":1,"b":2}}`), `13:{"a":{"b":2}}`},
		{JSON, json.RawMessage(`"\n\t\""`), `12:"\n\u0009\""`},
	} {
		got := string(AppendCanonical(nil, c.t, c.v))
		want := c.want
		if c.t == JSON { // the prefix is easier counted here
			_, body, _ := strings.Cut(want, ":")
			want = string(AppendCanonical(nil, String, body))
		}
		if got != want {
			t.Errorf("AppendCanonical(%s, %v) = %q, want %q", c.t, c.v, got, want)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    Type
		a, b any
		want bool
	}{
		{Decimal, dec("1.5"), dec("1.50"), true},
		{Decimal, dec("1.5"), dec("1.51"), false},
		{Time, at("2026-01-02T03:04:05+08:00"), at("2026-01-01T19:04:05Z"), true},
		{JSON, json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{ "b":2, "a":1 }`), true},
		{JSON, json.RawMessage(`{"a":1}`), json.RawMessage(`{"a":1.0}`), false},
		{Bytes, []byte(`{"a":1}`), []byte(`{ "a":1}`), false},
		{Bytes, []byte{}, nil, false},
		{String, "", nil, false},
		{String, nil, nil, true},
		{String, "a", "A", false},
		{Int, int64(1), int64(1), true},
	} {
		if got := Equal(c.t, c.a, c.b); got != c.want {
			t.Errorf("Equal(%s, %v, %v) = %v", c.t, c.a, c.b, got)
		}
	}
}

func TestJSONKeepsValuesExactly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    Type
		v    any
		want string
	}{
		{String, "a\"\\\n\u0001支", `"a\"\\\n\u0001支"`},
		{Int, int64(9223372036854775807), "9223372036854775807"},
		{Float, 1e21, "1e+21"},
		{Float, 5e-324, "5e-324"},
		{Bool, false, "false"},
		{Time, at("0001-01-01T00:00:00.000001Z"), `"0001-01-01T00:00:00.000001Z"`},
		{Bytes, []byte{0, 255}, `"AP8="`},
		{Bytes, []byte{}, `""`},
		{JSON, json.RawMessage(`{"b":1.0}`), `{"b":1.0}`},
		{Decimal, dec("-12.50"), `"-12.5"`},
		{Int, nil, "null"},
		{JSON, nil, "null"},
	} {
		raw := AppendJSON(nil, c.t, c.v)
		if string(raw) != c.want || !json.Valid(raw) {
			t.Errorf("AppendJSON(%s, %v) = %s, want %s", c.t, c.v, raw, c.want)
		}
		back, err := FromJSON(c.t, raw)
		if err != nil || !Equal(c.t, back, c.v) {
			t.Errorf("FromJSON(%s, %s) = %v, %v", c.t, raw, back, err)
		}
	}
	for _, c := range []struct {
		t   Type
		raw string
	}{
		{Int, `"5"`},
		{Int, "1.5"},
		{Float, `"x"`},
		{Bool, "1"},
		{String, "5"},
		{Time, `"now"`},
		{Bytes, `"*"`},
		{Decimal, "1.5"},
		{Decimal, `"1e999"`},
		{JSON, "{"},
		{Nil, `""`},
		{Bool, "nul"},
	} {
		if v, err := FromJSON(c.t, []byte(c.raw)); err == nil {
			t.Errorf("FromJSON(%s, %s) = %v, want an error", c.t, c.raw, v)
		}
	}
}

func TestParseText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    Type
		text string
		want any
	}{
		{String, "0123", "0123"},
		{String, "", ""},
		{Int, "-9223372036854775808", int64(math.MinInt64)},
		{Int, "0", int64(0)},
		{Float, "1e3", 1000.0},
		{Float, "-0", 0.0},
		{Bool, "true", true},
		{Decimal, "1.50", dec("1.5")},
		{Time, "2026-01-02T03:04:05.5+08:00", at("2026-01-01T19:04:05.5Z")},
		{Bytes, "AP8=", []byte{0, 255}},
		{JSON, `{"a": 1}`, json.RawMessage(`{"a":1}`)},
		{JSON, "null", nil},
	} {
		got, err := ParseText(c.t, -1, c.text)
		if err != nil || !Equal(c.t, got, c.want) {
			t.Errorf("ParseText(%s, %q) = %v, %v", c.t, c.text, got, err)
		}
	}
	for _, c := range []struct {
		t    Type
		text string
	}{
		{String, "\x00"},
		{Int, "0123"},
		{Int, "1_000"},
		{Int, "0x1f"},
		{Int, "1.0"},
		{Int, ""},
		{Int, "9223372036854775808"},
		{Float, "inf"},
		{Float, "0x1p3"},
		{Float, "1e999"},
		{Bool, "yes"},
		{Bool, "True"},
		{Decimal, "1e3"},
		{Decimal, ".5"},
		{Time, "2026-01-02"},
		{Time, "2026-01-02T03:04:05"},
		{Bytes, "?"},
		{JSON, ""},
		{Duration, "1s"},
	} {
		if got, err := ParseText(c.t, 2, c.text); err == nil {
			t.Errorf("ParseText(%s, %q) = %v, want an error", c.t, c.text, got)
		}
	}
	for text, want := range map[string]any{
		"9007199254740993": nil, "9007199254740993.0": nil, "+9007199254740993e0": nil, "1e-400": nil, "-1e-400": nil, "1e400": nil, "x": nil,
		"9007199254740992": 9007199254740992.0, "0.1": 0.1, "+0.5": 0.5, "1e23": 1e23, "0e-400": 0.0, "5e-324": 5e-324,
	} {
		if got, err := ParseDefault(Float, -1, text); got != want || (err == nil) != (want != nil) {
			t.Errorf("ParseDefault(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := ParseDefault(Decimal, -1, "0.1"); err != nil {
		t.Errorf("ParseDefault of a decimal: %v, %v", got, err)
	}
	if got, err := ParseText(Float, -1, "9007199254740993"); err != nil {
		t.Errorf("what a database wrote is rounded: %v, %v", got, err)
	}
	if _, err := ParseText(Decimal, 2, "0.125"); err == nil {
		t.Error("a default with more digits than the scale passes")
	}
}

func TestFormatValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("支", 100)
	for _, c := range []struct {
		t    Type
		v    any
		want string
	}{
		{Int, int64(9900), "9900"},
		{String, `wx-"1"`, `"wx-\"1\""`},
		{String, nil, "nil"},
		{Bool, true, "true"},
		{Decimal, dec("1.50"), "1.5"},
		{Time, at("2026-01-02T03:04:05.5Z"), "2026-01-02T03:04:05.5Z"},
		{Bytes, []byte{0, 255}, "0x00ff"},
		{JSON, json.RawMessage(`{"a":1}`), `{"a":1}`},
		{Duration, 90 * time.Second, "1m30s"},
		{String, long, `"` + strings.Repeat("支", 21) + `…"`},
	} {
		if got := FormatValue(c.t, c.v); got != c.want {
			t.Errorf("FormatValue(%s, %v) = %s, want %s", c.t, c.v, got, c.want)
		}
	}
	if got := FormatValue(Bytes, make([]byte, 5000)); !strings.HasSuffix(got, "… (5000 bytes)") || len(got) > 120 {
		t.Errorf("long bytes are shown as %s", got)
	}
}
