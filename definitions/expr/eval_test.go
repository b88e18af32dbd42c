package expr

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// testInput reads fields and args from maps; names that are missing are nil.
func testInput(fields, args map[string]any) Input {
	return Input{
		Field:  func(name string) any { return fields[name] },
		Arg:    func(name string) any { return args[name] },
		Now:    at("2026-01-02T03:04:05.678901Z"),
		Secret: func(name string) bool { return name == "s" },
	}
}

var evalFields = map[string]any{
	"s": "abc", "i": int64(7), "f": 1.5, "b": true, "t": at("2026-01-02T03:04:05Z"), "d": dec("12.34"),
	"y": []byte{1}, "j": json.RawMessage(`{"a":1}`), "amount": int64(math.MaxInt64), "count": int64(math.MinInt64), "len": int64(-7),
	"支付": int64(0),
}

var evalArgs = map[string]any{
	"s": "secret", "i": int64(2), "f": 0.25, "b": false, "t": at("2026-01-02T03:04:06Z"), "d": dec("0.01"), "total": int64(100),
	"y": []byte{2}, "j": json.RawMessage(`[]`),
}

func TestEval(t *testing.T) {
	t.Parallel()
	type rejected string
	long := strings.Repeat("支", 200)
	fields := map[string]any{}
	for k, v := range evalFields {
		fields[k] = v
	}
	for _, c := range []struct {
		t    Type
		src  string
		want any
	}{
		// int: truncating division, the sign of the dividend, every step in range
		{Int, "i / 2", int64(3)},
		{Int, "len / 2", int64(-3)},
		{Int, "i / -2", int64(-3)},
		{Int, "i % 4", int64(3)},
		{Int, "len % 4", int64(-3)},
		{Int, "i % -4", int64(3)},
		{Int, "count % -1", int64(0)},
		{Int, "count / -1", rejected("range of an int")},
		{Int, "i / 支付", rejected("i / 支付: division by zero (i is 7, 支付 is 0)")},
		{Int, "i % 支付", rejected("division by zero")},
		{Int, "in_ / 0", rejected("division by zero")},
		{Int, "0 / in_", nil},
		{Int, "amount + 1", rejected("amount + 1: out of the range of an int (amount is 9223372036854775807)")},
		{Int, "amount + 1 - 1", rejected("range")},
		{Int, "count - 1", rejected("range")},
		{Int, "-count", rejected("range")},
		{Int, "amount * 2", rejected("range")},
		{Int, "count * -1", rejected("range")},
		{Int, "-1 * count", rejected("range")},
		{Int, "count * 1", int64(math.MinInt64)},
		{Int, "3037000500 * 3037000500", rejected("range")},
		{Int, "3037000499 * 3037000499", int64(9223372030926249001)},
		{Int, "amount + count", int64(-1)},
		{Int, "count - count", int64(0)},
		{Int, "-amount - 1", int64(math.MinInt64)},
		{Int, "(amount + 1) ?? 0", nil}, // a finding, see below
		{Int, "(in_ + (amount + 1)) ?? 0", rejected("range")},
		{Int, "args.i + args.total", int64(102)},
		// decimal
		{Decimal, "d + args.d", dec("12.35")},
		{Decimal, "d - 0.34", dec("12")},
		{Decimal, "d * 3", dec("37.02")},
		{Decimal, "-d", dec("-12.34")},
		{Decimal, "args.d * i", dec("0.07")},
		{Decimal, "999999999999.999999 + 0.000001", rejected("range of a decimal")},
		{Decimal, "999999999999 * 2", rejected("range of a decimal")},
		{Decimal, "d * amount", rejected("range of a decimal")},
		{Decimal, "-999999999999.999999 - 0.000001", rejected("decimal")},
		{Decimal, "dn + 1", nil},
		// float
		{Float, "f * 2 + 0.5", 3.5},
		{Float, "f / args.f", 6.0},
		{Float, "f / 0", rejected("division by zero")},
		{Float, "fn / 0", rejected("zero")},
		{Float, "0.1 + 0.2", 0.30000000000000004},
		{Float, "0 * -f", 0.0},
		{Float, "fn", nil},
		// string
		{String, "s + '-' + s", "abc-abc"},
		{String, "s + sn", nil},
		{String, "'" + long + "' + '" + long[:165] + "'", long + long[:165]},
		{String, "'" + long + "' + '" + long[:168] + "'", rejected("255 characters")},
		// time
		{Time, "t + duration('1h')", at("2026-01-02T04:04:05Z")},
		{Time, "t - duration('1us')", at("2026-01-02T03:04:04.999999Z")},
		{Time, "now()", at("2026-01-02T03:04:05.678901Z")},
		{Time, "tn + duration('1h')", nil},
		{Bool, "args.t - t == duration('1s')", true},
		{Bool, "t - args.t < duration('-999ms')", true},
		{Bool, "now() > t", true},
		// comparisons
		{Bool, "'a' < 'B'", false},
		{Bool, "'支' > 'z'", true},
		{Bool, "'' < 'a'", true},
		{Bool, "'Paid' == 'paid'", false},
		{Bool, "d == 12.340", true},
		{Bool, "i >= 7", true},
		{Bool, "i != 7", false},
		{Bool, "1 < i < 7", false},
		{Bool, "b == args.b", false},
		// nil
		{Bool, "sn == s", nil},
		{Bool, "sn < s", nil},
		{Bool, "sn == nil", true},
		{Bool, "sn != nil", false},
		{Bool, "not bn", nil},
		{Bool, "bn and args.b", false},
		{Bool, "args.b and bn", false},
		{Bool, "bn or b", true},
		{Bool, "bn and b", nil},
		{Bool, "b and bn", nil},
		{Bool, "bn or args.b", nil},
		{Bool, "bn or bn", nil},
		{Bool, "bn and bn", nil},
		{Bool, "bn ? true : args.b", false},
		{Int, "in_ ?? 3", int64(3)},
		{Int, "in_ ?? i", int64(7)},
		{Int, "in_ + 1", nil},
		{Bool, "i in [1, 7]", true},
		{Bool, "i in [1, 2]", false},
		{Bool, "i in [1, in_]", nil},
		{Bool, "i in [7, in_]", true},
		{Bool, "in_ in [1]", nil},
		{Bool, "i not in [1, 7]", false},
		{Bool, "i not in [1, 2]", true},
		{Bool, "i not in [1, in_]", nil},
		{Bool, "i not in [7, in_]", false},
		// rejection and order of evaluation
		{Bool, "args.b and 1 / 支付 == 1", false},
		{Bool, "b or 1 / 支付 == 1", true},
		{Bool, "bn and 1 / 支付 == 1", rejected("zero")},
		{Bool, "1 / 支付 == 1 and args.b", rejected("zero")},
		{Bool, "1 / 支付 == 1 or b", rejected("zero")},
		{Int, "b ? 1 : 1 / 支付", int64(1)},
		{Int, "bn ? 1 / 支付 : 2", int64(2)},
		{Int, "b ? 1 / 支付 : 2", rejected("zero")},
		{Bool, "i in [7, 1 / 支付]", rejected("zero")},
		{Int, "in_ + 1 / 支付", rejected("zero")},
		{Bool, "in_ == 1 / 支付", rejected("zero")},
		{Int, "(b ? nil : 3) ?? 1 / 支付", rejected("zero")},
		{Int, "(args.b ? nil : 3) ?? (1 / 支付)", int64(3)},
		{Bool, "(in_ / 支付) == nil", rejected("zero")},
		// the rest
		{Bytes, "yn ?? y", []byte{1}},
		{JSON, "b ? args.j : j", json.RawMessage(`[]`)},
		{JSON, "jn", nil},
	} {
		e, problems := ParseAssignment(c.src, testEnv, Var{Name: "x", Type: c.t, Nullable: true, Scale: -1})
		if e == nil {
			if c.src != "(amount + 1) ?? 0" && c.src != "(b ? nil : 3) ?? 1 / 支付" {
				t.Errorf("%s: %s", c.src, texts(problems))
			}
			continue
		}
		got, err := e.Eval(testInput(fields, evalArgs))
		if why, ok := c.want.(rejected); ok {
			var rej *Rejection
			if !errors.As(err, &rej) || !strings.Contains(err.Error(), string(why)) {
				t.Errorf("%s = %v, %v; want a rejection %q", c.src, got, err, why)
			}
			continue
		}
		if err != nil || !Equal(c.t, got, c.want) {
			t.Errorf("%s = %v, %v; want %v", c.src, got, err, c.want)
		}
		if again, err := Coerce(c.t, -1, got); err != nil || !Equal(c.t, got, again) {
			t.Errorf("%s = %#v is not canonical", c.src, got)
		}
	}
}

func TestFloatBound(t *testing.T) {
	t.Parallel()
	e, problems := ParseAssignment("f * fn", testEnv, Var{Type: Float, Nullable: true})
	if e == nil {
		t.Fatal(texts(problems))
	}
	for _, c := range []struct {
		a, b any
		ok   bool
	}{
		{0x1p100, 0x1p-100, true},
		{-0x1p100, 0x1p100, true},
		{0.0, 1.0, true},
		{math.MaxFloat64, 1.0, false},
		{1.0, 0x1p-101, false},
		{math.Nextafter(0x1p100, 2e30), nil, false},
		{nil, 1e31, false},
		{1.0, nil, true},
		{5e-324, 0.0, false},
		{math.NaN(), 1.0, false},
		{math.Inf(1), 1.0, false},
	} {
		_, err := e.Eval(testInput(map[string]any{"f": c.a, "fn": c.b}, nil))
		if (err == nil) != c.ok {
			t.Errorf("%v * %v: %v", c.a, c.b, err)
		}
	}
}

func TestTimeRange(t *testing.T) {
	t.Parallel()
	for src, ok := range map[string]bool{
		"tn + duration('1us')": false, "tn - duration('1us')": true, "t - duration('1us')": false, "t + duration('876600h')": true,
		"tn - duration('876600h') - duration('876600h') + duration('876600h')": true, "tn + duration('1us') - duration('1us')": false,
	} {
		e, problems := ParseAssignment(src, testEnv, Var{Type: Time, Nullable: true})
		if e == nil {
			t.Fatal(texts(problems))
		}
		_, err := e.Eval(testInput(map[string]any{"t": at("0001-01-01T00:00:00.000001Z"), "tn": at("9999-12-31T23:59:59.999999Z")}, nil))
		if (err == nil) != ok {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestStoredValuesOfNoType(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"i": "abc", "s": 7.5, "f": math.Inf(1), "t": time.Time{}, "d": dec("0.1234567"), "b": "yes", "j": json.RawMessage("{"),
	} {
		e, problems := ParseCondition(name+" == "+name, testEnv)
		if name == "j" {
			e, problems = ParseAssignment("j", testEnv, Var{Type: JSON})
		}
		if e == nil {
			t.Fatal(texts(problems))
		}
		_, err := e.Eval(testInput(map[string]any{name: v}, nil))
		if name == "j" { // the document itself is not looked into when it is read
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "none of its type") {
			t.Errorf("%s = %v is read: %v", name, v, err)
		}
	}
	e, _ := ParseCondition("i == 5 and s == 'x'", testEnv)
	if ok, err := e.Holds(testInput(map[string]any{"i": 5, "s": currency("x")}, nil)); !ok || err != nil {
		t.Errorf("values that coerce are not taken: %v", err)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{"b": true, "args.b": false, "bn": false, "not b": false} {
		e, _ := ParseCondition(src, testEnv)
		if got, err := e.Holds(testInput(evalFields, evalArgs)); got != want || err != nil {
			t.Errorf("%s holds: %v, %v", src, got, err)
		}
	}
	e, _ := ParseCondition("i / 支付 == 1", testEnv)
	if got, err := e.Holds(testInput(evalFields, evalArgs)); got || err == nil {
		t.Error("a rejected condition holds")
	}
	if got, err := e.Holds(Input{}); got || err != nil {
		t.Errorf("nothing but nils: %v, %v", got, err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"amount == args.total":       "amount == args.total: amount is 9223372036854775807, args.total is 100",
		"i  ==\n 1 and i > 0":        "i == 1 and i > 0: i is 7",
		"s == args.s":                `s == args.s: s is "abc", args.s is secret`,
		"sn == 'x'":                  "sn == 'x': sn is nil",
		"t > now()":                  "t > now(): t is 2026-01-02T03:04:05Z, now() is 2026-01-02T03:04:05.678901Z",
		"true":                       "true",
		"args.i / 支付 == 1 and d < 1": "args.i / 支付 == 1 and d < 1: args.i is 2, 支付 is 0, d is 12.34; args.i / 支付: division by zero",
		"args.s + args.s + args.s == s and i == 1": `args.s + args.s + args.s == s and i == 1: args.s is secret, s is "abc", i is 7`,
	} {
		e, problems := ParseCondition(src, testEnv)
		if e == nil {
			t.Fatal(texts(problems))
		}
		if got := e.Explain(testInput(evalFields, evalArgs)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestARejectionDoesNotTellSecrets(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("x", 200)
	e, _ := ParseCondition("args.s + args.s == s", testEnv)
	_, err := e.Holds(testInput(evalFields, map[string]any{"s": secret}))
	if err == nil || strings.Contains(err.Error(), "xx") || !strings.Contains(err.Error(), "args.s is secret") {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t  Type
		l  Limits
		v  any
		ok bool
	}{
		{Int, Limits{}, int64(math.MaxInt64), true},
		{Int, Limits{Min: -128, Max: 127}, int64(127), true},
		{Int, Limits{Min: -128, Max: 127}, int64(128), false},
		{String, Limits{Length: 3}, "支付宝", true},
		{String, Limits{Length: 3}, "支付宝x", false},
		{String, Limits{}, strings.Repeat("x", 999), true},
		{Decimal, Limits{Precision: 10, Scale: 2}, dec("99999999.99"), true},
		{Decimal, Limits{Precision: 10, Scale: 2}, dec("100000000"), false},
		{Decimal, Limits{Precision: 10, Scale: 2}, dec("0.125"), false},
		{Decimal, ScaleOnly(2), dec("999999999999.99"), true},
		{Decimal, ScaleOnly(0), dec("1.5"), false},
		{Decimal, ScaleOnly(-1), dec("1.000001"), true},
		{Decimal, Limits{Precision: 2, Scale: 4}, dec("0.01"), false},
		{Decimal, Limits{Precision: 30, Scale: 10}, dec("999999999999.999999"), true},
		{Decimal, Limits{Precision: 10, Scale: 2}, nil, true},
		{Bool, Limits{Length: 1}, true, true},
	} {
		if err := c.l.Check(c.t, c.v); (err == nil) != c.ok {
			t.Errorf("%+v takes %v: %v", c.l, c.v, err)
		}
	}
	e, _ := ParseAssignment("i + 100", testEnv, Var{Type: Int})
	if _, err := e.Assign(testInput(evalFields, nil), Limits{Min: -100, Max: 100}); err == nil || !strings.Contains(err.Error(), "i + 100: outside -100 to 100 (i is 7)") {
		t.Error(err)
	}
	if v, err := e.Assign(testInput(evalFields, nil), Limits{}); v != int64(107) || err != nil {
		t.Error(v, err)
	}
}

func TestNarrower(t *testing.T) {
	t.Parallel()
	a := Limits{Min: -10, Max: 10, Length: 20, Precision: 10, Scale: 2}
	b := Limits{Min: -5, Max: 50, Length: 5, Precision: 18, Scale: 6}
	if got := a.Narrower(b); got != (Limits{Min: -5, Max: 10, Length: 5, Precision: 10, Scale: 2}) {
		t.Errorf("%+v", got)
	}
	if got := a.Narrower(Limits{}); got != a {
		t.Errorf("%+v", got)
	}
	if got := (Limits{}).Narrower(a); got != a {
		t.Errorf("%+v", got)
	}
	if got := ScaleOnly(2).Narrower(Limits{Precision: 18, Scale: 6}); got != (Limits{Precision: 14, Scale: 2}) {
		t.Errorf("%+v", got)
	}
}

func TestConditionsDoNotAllocate(t *testing.T) {
	e, problems := ParseCondition("i + 1 >= args.total and s == args.s and d * 2 > 1.5 and t < now() and f / 2 > 0.1 or b", testEnv)
	if e == nil {
		t.Fatal(texts(problems))
	}
	in := testInput(evalFields, evalArgs)
	if n := testing.AllocsPerRun(100, func() { _, _ = e.Holds(in) }); n != 0 {
		t.Errorf("Holds allocates %v times", n)
	}
}

func BenchmarkHolds(b *testing.B) {
	e, _ := ParseCondition("amount == args.total or i + 1 >= args.total", testEnv)
	in := testInput(evalFields, evalArgs)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = e.Holds(in)
	}
}
