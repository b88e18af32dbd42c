package engine

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
)

func TestKeyRules(t *testing.T) {
	generated := generateKey()
	for _, key := range []string{"k", long(255), "a=b", "a#b", " ", "ключ", "🔑", "\n", generated, "'; DROP TABLE orders; --"} {
		if err := checkKey(key); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
	for key, says := range map[string]string{
		"":                            "empty",
		long(256):                     "256 bytes, the limit is 255",
		strings.Repeat("ü", 128):      "256 bytes",
		"=":                           "derived from arguments",
		"=pay:1:x":                    "derived from arguments",
		"#":                           "that the engine generates",
		"#1":                          "that the engine generates",
		generated[:32]:                "that the engine generates",
		generated + "0":               "that the engine generates",
		"#" + strings.Repeat("A", 32): "that the engine generates",
		"#" + strings.Repeat("g", 32): "that the engine generates",
		"a\x00b":                      "NUL",
		"a\xff":                       "UTF-8",
		"\xed\xa0\x80":                "UTF-8", // a surrogate half
	} {
		wantText(t, checkKey(key), says)
	}
}

// What a call is refused for before anything is sent.
func TestInvalidCalls(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	bare := machineOver(t, s, orderWith("", "journal: false\n"))
	ballot := machineOver(t, s, ballotText)
	pay := Args{"amount": 1}
	for _, c := range []struct {
		name string
		m    *Machine
		fire string
		id   string
		args Args
		opts []CallOption
		says string
	}{
		{"unknown transition", m, "fly", "o-1", nil, nil, "it has pay, cancel, ship, dispute"},
		{"missing arg", m, "pay", "o-1", nil, nil, "arg amount (int) is missing"},
		{"unknown arg", m, "pay", "o-1", Args{"amount": 1, "reff": "x"}, nil, `no arg "reff"; it takes amount, ref`},
		{"arg of another type", m, "pay", "o-1", Args{"amount": "1"}, nil, "arg amount"},
		{"arg with NUL", m, "pay", "o-1", Args{"amount": 1, "ref": "a\x00"}, nil, "arg ref"},
		{"arg of a transition without", m, "ship", "o-1", Args{"x": 1}, nil, "it takes none"},
		{"empty id", m, "pay", "", pay, nil, "the id is empty"},
		{"id too long", m, "pay", long(256), pay, nil, "the id has 256 bytes"},
		{"id with NUL", m, "pay", "a\x00b", pay, nil, "the id holds a NUL"},
		{"id that is no UTF-8", m, "pay", "\xff", pay, nil, "the id is not valid UTF-8"},
		{"id that no row can have", m, "pay", "no row can have this", pay, nil, "not a UUID"},
		{"empty key", m, "pay", "o-1", pay, []CallOption{WithKey("")}, "the key is empty"},
		{"key too long", m, "pay", "o-1", pay, []CallOption{WithKey(long(300))}, "300 bytes"},
		{"key of a derived form", m, "pay", "o-1", pay, []CallOption{WithKey("=x")}, "derived"},
		{"no version of a row", m, "pay", "o-1", pay, []CallOption{WithVersion(AnyVersion)}, "no row can be at this version"},
		{"actor too long", m, "pay", "o-1", pay, []CallOption{WithActor(long(256))}, "the actor has 256 bytes"},
		{"actor with NUL", m, "pay", "o-1", pay, []CallOption{WithActor("\x00")}, "the actor holds a NUL"},
		{"an option that is nil", m, "pay", "o-1", pay, []CallOption{nil}, "an option is nil"},
		{"meta that is no JSON", m, "pay", "o-1", pay, []CallOption{WithMeta(make(chan int))}, "meta"},
		{"key on a derived one", ballot, "vote", "o-1", Args{"by": "a", "weight": 1}, []CallOption{WithKey("k")}, "derives its key"},
		{"a required key", ballot, "close", "o-1", nil, nil, "needs a key"},
		{"key without journal", bare, "pay", "o-1", pay, []CallOption{WithKey("k")}, "no journal"},
		{"actor without journal", bare, "pay", "o-1", pay, []CallOption{WithActor("a")}, "no journal"},
		{"meta without journal", bare, "pay", "o-1", pay, []CallOption{WithMeta(1)}, "no journal"},
	} {
		_, err := c.m.Fire(context.Background(), c.fire, c.id, c.args, c.opts...)
		var e *Error
		if !errors.Is(err, ErrInvalidArgs) || !errors.As(err, &e) || e.Transition != c.fire || e.ID != c.id {
			t.Errorf("%s: error %v, want ErrInvalidArgs", c.name, err)
			continue
		}
		wantText(t, err, c.says)
	}
	wantSent(t, s)
	if _, err := m.FireValues(context.Background(), "pay", "o-1", []any{1}); !errors.Is(err, ErrInvalidArgs) {
		t.Errorf("too few values: %v", err)
	}
}

// Secret arguments never reach a message or the journal.
func TestSecretArgs(t *testing.T) {
	m := machineOver(t, &fakeStore{}, `
machine: m
table: {name: m}
initial: a
states: {a: , b: {final: true}}
transitions:
  go: {from: a, to: b, args: {pin: {type: int, secret: true}, note: string}}
`)
	_, err := m.Fire(context.Background(), "go", "1", Args{"pin": "hunter2", "note": "n"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v, want one without the secret", err)
	}
	tr := &m.rules.transitions[0]
	if got := string(tr.argsJSON([]any{"n", int64(4711)})); got != `{"note":"n"}` {
		t.Errorf("the journal would hold %s", got)
	}
	if tr.fingerprint([]any{"n", int64(1)}) == tr.fingerprint([]any{"n", int64(2)}) {
		t.Error("a secret counts in the fingerprint")
	}
}

func TestIntIDs(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, strings.Replace(orderWith(""), "{name: orders}", "{name: orders, id: {column: id, type: int}}", 1))
	s.apply = []reply{{change: m.change("paid", "shipped", 2)}}
	for _, id := range []string{"0", "1", "-1", "9223372036854775807", "-9223372036854775808"} {
		if _, err := m.Fire(context.Background(), "ship", id, nil); err != nil {
			t.Errorf("id %s: %v", id, err)
		}
	}
	s.sent = nil
	for _, id := range []string{"", "x", "1.0", "01", "+1", " 1", "1 ", "-0", "1e3", "0x10", "9223372036854775808"} {
		if _, err := m.Fire(context.Background(), "ship", id, nil); !errors.Is(err, ErrInvalidArgs) {
			t.Errorf("id %q: error %v, want ErrInvalidArgs", id, err)
		}
	}
	wantSent(t, s)
	s.create = []reply{{change: Change{OK: true, From: -1, Version: 1}}}
	for _, id := range []any{7, int64(7), uint8(7), "7"} {
		if res, err := m.Create(context.Background(), Row{"id": id}); err != nil || res.ID != "7" {
			t.Errorf("Create with id %T: result %+v, error %v", id, res, err)
		}
	}
}

const allTypes = `
machine: m
table: {name: m}
initial: a
states: {a: , b: {final: true}}
transitions:
  go:
    from: a
    to: b
    key: [args.s, args.i]
    args: {s: string, i: int, f: "float?", b: "bool?", t: "time?", y: "bytes?", j: "json?", d: "decimal?"}
  went: {from: a, to: b, args: {s: string, i: int}}
`

// Fingerprints are stored for as long as the journal is kept: these values must not
// change.
func TestFingerprintGolden(t *testing.T) {
	r := rulesOf(t, allTypes)
	full := Args{
		"s": "ü", "i": -5, "f": 1.50, "b": true, "t": time.Date(2026, 3, 1, 20, 0, 0, 1500, time.FixedZone("", 8*3600)),
		"y": []byte{0, 255}, "j": []byte(`{"b": 1.0, "a": [ ]}`), "d": decimal.RequireFromString("1.50"),
	}
	for _, c := range []struct {
		fire string
		args Args
		want string
	}{
		{"go", full, "bcc074ddf91284584bc6a02faa03e2f7e967c8f056e9800c8fc299f2af0e96f6"},
		{"go", Args{"s": "ü", "i": -5}, "5478ff2ba8fe42990745c420f455c094f18386009c355b66d29298823eae621b"},
		{"went", Args{"s": "ü", "i": -5}, "a2ef919e198655884106c33322aacdd3c5d95bd2e9aeb966c4399a6a26575eb4"},
	} {
		if got := requestFor(t, r, call{fire: c.fire, args: c.args}).call.Fingerprint; got != c.want {
			t.Errorf("%s %v: fingerprint %s, want %s", c.fire, c.args, got, c.want)
		}
	}
}

// The same request in another spelling has the same fingerprint, another one has not.
func TestFingerprint(t *testing.T) {
	r := rulesOf(t, allTypes)
	of := func(args Args) string {
		full := Args{"s": "x", "i": 1}
		for k, v := range args {
			full[k] = v
		}
		return requestFor(t, r, call{fire: "go", args: full}).call.Fingerprint
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 1000, time.UTC)
	one := 1
	for name, pair := range map[string][2]Args{
		"width of an int":          {{"i": int8(1)}, {"i": &one}},
		"zeros of a decimal":       {{"d": "1.50"}, {"d": decimal.RequireFromString("1.5")}},
		"zone of a time":           {{"t": at}, {"t": at.In(time.FixedZone("", -7200))}},
		"nanoseconds":              {{"t": at}, {"t": at.Add(999)}},
		"spaces in JSON":           {{"j": []byte(`{"a":1,"b":[2]}`)}, {"j": []byte(`{ "b" : [2], "a" : 1 }`)}},
		"an optional given as nil": {{"f": nil}, {}},
		"negative zero":            {{"f": 0.0}, {"f": negZero()}},
	} {
		if of(pair[0]) != of(pair[1]) {
			t.Errorf("%s: %v and %v differ", name, pair[0], pair[1])
		}
	}
	seen := map[string]string{}
	for name, args := range map[string]Args{
		"nothing": {}, "other text": {"s": "y"}, "text with its length": {"s": "x1:1"}, "other int": {"i": 11},
		"zero": {"f": 0.0}, "false": {"b": false}, "true": {"b": true}, "empty bytes": {"y": []byte{}},
		"bytes": {"y": []byte("1")}, "json text": {"j": []byte(`"1"`)}, "json number": {"j": []byte(`1`)},
		"json number text": {"j": []byte(`1.0`)}, "decimal": {"d": "1"}, "float": {"f": 1.0},
	} {
		f := of(args)
		if other, dup := seen[f]; dup {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		if seen[f] = name; len(f) != 64 {
			t.Errorf("%s: fingerprint %q is no SHA-256", name, f)
		}
	}
}

func negZero() float64 { return math.Copysign(0, -1) }

func TestDerivedKeys(t *testing.T) {
	r := rulesOf(t, allTypes)
	key := func(s string, i int) string {
		return requestFor(t, r, call{fire: "go", args: Args{"s": s, "i": i}}).call.Key
	}
	for _, c := range []struct {
		s    string
		i    int
		want string
	}{
		{"ann", 7, "=go:3:ann1:7"},
		{"", -1, "=go:0:2:-1"},
		{"ü:1", 0, "=go:4:ü:11:0"},
		{long(240), 7, "=go:240:" + long(240) + "1:7"},
		{long(244), 7, "=go:244:" + long(244) + "1:7"},
		{long(245), 7, "=go:#a8bf5a7dbd8593373e8500e4d1191c311f030a4fae86b4343a2d1ad09d304879"},
		{long(1000), 7, "=go:#eceb44d5aa2410f3ac9209b2af29aef21fedff9b34186a89782b65366bbae505"},
	} {
		got := key(c.s, c.i)
		if got != c.want {
			t.Errorf("key of %.10q.., %d is %s, want %s", c.s, c.i, got, c.want)
		}
		if len(got) > maxKey {
			t.Errorf("key %s has %d bytes", got, len(got))
		}
	}
	if key("a", 11) == key("a1", 1) || key("1:1", 1) == key("1", 11) {
		t.Error("two lists of parts have one key")
	}
}
