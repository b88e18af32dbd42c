package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fsmgen/fsmgen/engine"
)

func typeChecks() []check {
	return []check{
		{name: "every value comes back as it went in, by Create", run: func(e *env) { typesRoundTrip(e, false) }},
		{name: "every value comes back as it went in, by set", run: func(e *env) { typesRoundTrip(e, true) }},
		{name: "absent optional args and null write NULL", run: typesNull},
		{name: "the journal keeps args exactly", run: typesJournal},
		{name: "equal values in other forms are the same request", run: typesCanonical},
		{name: "the caller's bytes stay the caller's", run: typesNoSharing},
	}
}

// sample is one value of a type: given in some form, read back as want.
type sample struct {
	short string // the arg and the end of the field's name
	given any
	want  any
}

// names of the fields behind the args of machine everything.
func fieldOf(short string) string {
	return map[string]string{"s": "string", "i": "int", "f": "float", "b": "bool", "t": "time", "y": "bytes", "j": "json", "d": "decimal"}[short]
}

func samples() []sample {
	east := time.FixedZone("east", 8*3600)
	var out []sample
	add := func(short string, given, want any) { out = append(out, sample{short, given, want}) }
	for _, s := range []string{
		"", " ", "a ", " a", "O'Brien", `"quoted"`, "`tick`", "?", "$1", ":n", "%s", `\`, `\n`, "\n\r\t", "--", "/* */", "NULL", "0", "ünïcödé", "e\u0301", "订单 🛒", "\u200f\u202e", "\ufeff", "\u2028",
		strings.Repeat("long 字 ", 2000),
	} {
		add("s", s, s)
	}
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1<<53 + 1} {
		add("i", n, n)
	}
	for _, f := range []float64{0, 1, -1.5, 0.1, 1e15, 123456.789, 5e-5, -2.5e9} {
		add("f", f, f)
	}
	add("b", true, true)
	add("b", false, false)
	for _, t := range []time.Time{
		time.Date(2026, 1, 2, 8, 0, 0, 0, east), // 00:00Z: the zone is not kept, the instant is
		time.Date(2026, 1, 1, 23, 30, 0, 0, time.FixedZone("west", -5*3600)),
		time.Date(2024, 2, 29, 12, 34, 56, 987654321, time.UTC),
		time.Date(2026, 3, 29, 2, 30, 0, 1000, time.UTC), // an hour that some zones skip
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(2039, 1, 19, 3, 14, 8, 500000, time.UTC),
		time.Date(2026, 12, 31, 23, 59, 59, 999999999, time.UTC), // cut, not rounded into the next year
	} {
		add("t", t, t.UTC().Truncate(time.Microsecond))
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, y := range [][]byte{{}, {0}, []byte("text"), all} {
		add("y", y, y)
	}
	for _, j := range []string{`{}`, `[]`, `"text"`, `0`, `true`, `{"b": [1, 2.5, null], "a": "ü"}`, `{"big": 9007199254740993, "s": "it's ? 订单"}`} {
		add("j", json.RawMessage(j), json.RawMessage(j))
	}
	for _, d := range []string{"0", "1", "-1", "0.1", "-0.000001", "999999999999.999999", "-999999999999.999999", "12.50", "100", "0.30"} {
		add("d", d, dec(d))
		add("d", dec(d), dec(d))
	}
	return out
}

// required are values for the fields that must be given.
func required(id string) engine.Row {
	return engine.Row{"id": id, "a_string": "s", "a_int": 1, "a_float": 1.5, "a_bool": true, "a_time": start, "a_bytes": []byte{1}, "a_json": json.RawMessage(`{}`), "a_decimal": "1"}
}

func typesRoundTrip(e *env, bySet bool) {
	e.open(everything)
	for i, s := range samples() {
		if text, ok := s.given.(string); ok && e.h.Features.Text > 0 && s.short == "s" && utf8.RuneCountInString(text) > e.h.Features.Text {
			e.Logf("left out: a text of %d characters, the column takes %d", utf8.RuneCountInString(text), e.h.Features.Text)
			continue
		}
		id := fmt.Sprint("r", i)
		row := required(id)
		if !bySet {
			row["a_"+fieldOf(s.short)] = s.given
			row["o_"+fieldOf(s.short)] = s.given
		}
		e.create(row)
		if bySet {
			e.apply("fill", id, engine.Args{s.short: s.given})
		}
		got := e.rowOf(id)
		want := engine.Row{"o_" + fieldOf(s.short): s.want}
		if !bySet {
			want["a_"+fieldOf(s.short)] = s.want
		}
		e.wantValues(got, want)
		for _, other := range []string{"s", "i", "f", "b", "t", "y", "j", "d"} {
			if other != s.short && got["o_"+fieldOf(other)] != nil {
				e.Errorf("%v: field %s is %v, want NULL", s.given, other, got["o_"+fieldOf(other)])
			}
		}
	}
}

func typesNull(e *env) {
	e.open(everything)
	row := required("r")
	full := engine.Args{"s": "", "i": 0, "f": 0.0, "b": false, "t": start, "y": []byte{}, "j": json.RawMessage(`[]`), "d": "0"}
	e.create(row)
	e.apply("fill", "r", full)
	e.wantValues(e.rowOf("r"), engine.Row{"o_string": "", "o_int": int64(0), "o_float": 0.0, "o_bool": false, "o_bytes": []byte{}, "o_json": json.RawMessage(`[]`), "o_decimal": dec("0")})
	e.apply("clear", "r", nil)
	null := engine.Row{"o_string": nil, "o_int": nil, "o_float": nil, "o_bool": nil, "o_time": nil, "o_bytes": nil, "o_json": nil, "o_decimal": nil}
	e.wantValues(e.rowOf("r"), null)

	row = required("n")
	for short := range full {
		row["o_"+fieldOf(short)] = full[short]
	}
	e.create(row)
	e.apply("fill", "n", engine.Args{"s": nil})
	e.wantValues(e.rowOf("n"), null)
	e.wantJSON(e.entries("n")[1].Args, `{}`)
}

func typesJournal(e *env) {
	e.open(everything)
	e.create(required("r"))
	e.apply("fill", "r", engine.Args{
		"s": "O'Brien \u2028 <&> 🛒", "i": int64(math.MaxInt64), "f": 0.1, "b": false, "t": time.Date(2026, 1, 2, 8, 0, 0, 1999, time.UTC),
		"y": []byte{0, 255}, "j": json.RawMessage(`{"n": 9007199254740993}`), "d": "12.50",
	})
	entry := e.entries("r")[1]
	var args map[string]json.RawMessage
	e.must(json.Unmarshal(entry.Args, &args))
	if len(args) != 8 {
		e.Errorf("args are %s", entry.Args)
	}
	e.wantJSON(args["i"], `9223372036854775807`)
	e.wantJSON(args["s"], `"O'Brien \u2028 <&> 🛒"`)
	e.wantJSON(args["j"], `{"n": 9007199254740993}`)
}

// typesCanonical: a repeat may say the same in another form; another value may not.
func typesCanonical(e *env) {
	e.open(everything)
	e.create(required("r"))
	east := time.FixedZone("east", 8*3600)
	at := time.Date(2026, 1, 2, 0, 0, 0, 5000, time.UTC)
	e.apply("fill", "r", engine.Args{"i": 7, "t": at, "d": "10.0", "j": json.RawMessage(`{"a":1,"b":2}`)}, engine.WithKey("k"))
	type text string
	for _, same := range []engine.Args{
		{"i": int64(7), "t": at.In(east), "d": dec("10"), "j": json.RawMessage(`{"b": 2, "a": 1}`)},
		{"i": uint8(7), "t": at.Add(999), "d": 10, "j": map[string]int{"a": 1, "b": 2}, "s": nil},
		{"i": json.Number("7"), "t": &at, "d": text("10.000"), "j": []byte("\n{\"a\":1,\"b\":2}")},
	} {
		res := e.fire("fill", "r", same, engine.WithKey("k"))
		if res.Outcome != engine.Replayed {
			e.Errorf("%v is %v, want Replayed", same, res.Outcome)
		}
	}
	base := func() engine.Args {
		return engine.Args{"i": 7, "t": at, "d": "10", "j": json.RawMessage(`{"a":1,"b":2}`)}
	}
	for name, v := range map[string]any{"i": 8, "t": at.Add(time.Microsecond), "d": "10.01", "j": json.RawMessage(`{"a":1,"b":3}`), "s": "", "b": false} {
		other := base()
		other[name] = v
		e.refuse(engine.ErrKeyReused, "fill", "r", other, engine.WithKey("k"))
	}
}

func typesNoSharing(e *env) {
	e.open(everything)
	given := []byte("given")
	doc := json.RawMessage(`{"a":1}`)
	row := required("r")
	row["a_bytes"], row["a_json"] = given, doc
	e.create(row)
	e.apply("fill", "r", engine.Args{"y": given, "j": doc})
	given[0], doc[2] = 'X', 'X'
	want := engine.Row{"a_bytes": []byte("given"), "o_bytes": []byte("given"), "a_json": json.RawMessage(`{"a":1}`), "o_json": json.RawMessage(`{"a":1}`)}
	got := e.rowOf("r")
	e.wantValues(got, want)
	got["a_bytes"].([]byte)[0] = 'Y'
	got["o_json"].(json.RawMessage)[2] = 'Y'
	e.wantValues(e.rowOf("r"), want)
	entries := e.entries("r")
	entries[1].Args[0] = 'Z'
	e.wantJSON(e.entries("r")[1].Args, `{"j":{"a":1},"y":"Z2l2ZW4="}`)
}
