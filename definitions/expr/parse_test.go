package expr

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// testEnv has a field of every type, plain (i) and nullable (in), and an arg of each.
var testEnv = Env{
	Fields: []Var{
		{Name: "s", Type: String},
		{Name: "sn", Type: String, Nullable: true},
		{Name: "i", Type: Int},
		{Name: "in_", Type: Int, Nullable: true},
		{Name: "f", Type: Float},
		{Name: "fn", Type: Float, Nullable: true},
		{Name: "b", Type: Bool},
		{Name: "bn", Type: Bool, Nullable: true},
		{Name: "t", Type: Time},
		{Name: "tn", Type: Time, Nullable: true},
		{Name: "d", Type: Decimal, Scale: -1},
		{Name: "dn", Type: Decimal, Nullable: true, Scale: -1},
		{Name: "y", Type: Bytes},
		{Name: "yn", Type: Bytes, Nullable: true},
		{Name: "j", Type: JSON},
		{Name: "jn", Type: JSON, Nullable: true},
		{Name: "amount", Type: Int},
		{Name: "count", Type: Int},
		{Name: "len", Type: Int},
		{Name: "支付", Type: Int},
	},
	Args: []Var{
		{Name: "s", Type: String},
		{Name: "i", Type: Int},
		{Name: "in_", Type: Int, Nullable: true},
		{Name: "f", Type: Float},
		{Name: "b", Type: Bool},
		{Name: "t", Type: Time},
		{Name: "d", Type: Decimal},
		{Name: "y", Type: Bytes},
		{Name: "j", Type: JSON},
		{Name: "total", Type: Int},
	},
}

func texts(problems []Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%d %s: %s [%s→%s]", p.Offset, p.Rule, p.Message, p.Name, p.Nearest))
	}
	return strings.Join(out, "\n")
}

func TestConditionsThatAreLegal(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"amount == args.i":                     "",
		"i + 1 >= args.total":                  "",
		"count > 1 and len < 2":                "", // builtins of the parser are plain names
		"支付 == 1":                              "",
		"not b":                                "",
		"!b && (b || args.b)":                  "not b and (b or args.b)",
		"args['i'] == 1":                       "args.i == 1",
		"i / 2 == 3":                           "",
		"i % 2 == -1":                          "",
		"-i < -(-i)":                           "",
		"f * 2 > 0.1":                          "f * 2.0 > 0.1",
		"d * 2 >= 1.50":                        "d * 2 >= 1.5",
		"2 * d >= 1":                           "",
		"d * (1 + 2) == args.d":                "",
		"1.5 * 2 == d":                         "",
		"f == 2 * 1.5":                         "f == 2.0 * 1.5",
		"1.5 == 1.50":                          "1.5 == 1.5",
		"d == 100":                             "",
		"i == 2.0":                             "i == 2",
		"i == 1e3":                             "i == 1000",
		"i == 0x1F":                            "i == 31",
		"i == 1_000":                           "i == 1000",
		"d == .5":                              "d == 0.5",
		"s + '-' + args.s == 'a-b'":            "",
		`s == "it's" or s == 'a\\b' `:          `s == 'it\'s' or s == 'a\\b'`,
		"s == `raw`":                           "s == 'raw'",
		"s == '//' or s == '= | ; { #'":        "",
		"t > now() - duration('30m')":          "t > now() - duration('30m0s')",
		"now() - t >= duration('1h') and true": "now() - t >= duration('1h0m0s') and true",
		"tn + duration('-1us') == t":           "tn + duration('-1µs') == t",
		"i in [1, 2, args.i]":                  "",
		"s not in ['a', 'b',]":                 "s not in ['a', 'b']",
		"not (s in ['a'])":                     "s not in ['a']",
		"b in [true, false]":                   "",
		"t in [now(), args.t]":                 "",
		"in_ == nil or in_ != args.i":          "",
		"nil == sn":                            "sn == nil",
		"(in_ ?? 0) == 3":                      "",
		"(in_ ?? i) + 1 == 3":                  "",
		"b ? s == 'x' : i == 1":                "",
		"b ? i > 1 : bn ? true : false":        "",
		"(b ? 1 : 2) == i":                     "",
		"(bn ? 1 : 2.5) == f":                  "(bn ? 1.0 : 2.5) == f",
		"(b ? nil : i) == nil":                 "",
		"((b ? nil : 1) ?? 2) == i":            "",
		"1 < i < 3":                            "1 < i and i < 3",
		"bn":                                   "",
		"yn == nil and jn != nil or true":      "",
	} {
		e, problems := ParseCondition(src, testEnv)
		if len(problems) > 0 {
			t.Errorf("%s:\n%s", src, texts(problems))
			continue
		}
		if want == "" {
			want = src
		}
		if got := e.Root.String(); got != want {
			t.Errorf("%s is read as %s", src, got)
		}
		again, problems := ParseCondition(e.Root.String(), testEnv)
		if len(problems) > 0 || again.Root.String() != e.Root.String() {
			t.Errorf("%s does not read back:\n%s", e.Root, texts(problems))
		}
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src    string
		offset int
		rule   string
		says   string // in the message, or behind → the nearest name
	}{
		{"", 0, RuleSyntax, "empty"},
		{"  ", 0, RuleSyntax, "empty"},
		{"i ==", 4, RuleSyntax, "ends too early"},
		{"i == 1 2", 7, RuleSyntax, `unexpected token "2"`},
		{"i = 1", 2, RuleSyntax, `did you mean "=="`},
		{"支付 = 1", 3, RuleSyntax, `did you mean "=="`},
		{"i <> 1", 2, RuleSyntax, `did you mean "!="`},
		{"s == 'x", 7, RuleSyntax, "not terminated"},
		{"in_ ?? 0 + 1 == 1", 9, RuleSyntax, "?? needs parentheses beside another operator"},
		{"i == 1 and i == 9223372036854775808 and b", 16, RuleLiteral, "9223372036854775808"},
		{"i == \xff", 0, RuleSyntax, "UTF-8"},
		{"i == 9223372036854775808", 5, RuleLiteral, "9223372036854775808"},
		{"i == -9223372036854775808", 6, RuleLiteral, "9223372036854775808"},
		{"amont == 1", 0, RuleUnknownName, "→amount"},
		{"amuont == 1", 0, RuleUnknownName, "→amount"},
		{"Amount == 1", 0, RuleUnknownName, "→amount"},
		{"total == 1", 0, RuleUnknownName, "→args.total"},
		{"totl == 1", 0, RuleUnknownName, "→args.total"},
		{"args.totl == 1", 0, RuleUnknownName, "→args.total"},
		{"1 == args.amount", 5, RuleUnknownName, "→amount"},
		{"args.zzzzz == 1", 0, RuleUnknownName, "[args.zzzzz→]"},
		{"null == 1", 0, RuleUnknownName, "→nil"},
		{"支那 == 1 or 世界支付 == 2", 0, RuleUnknownName, "→支付"},
		{"now == t", 0, RuleUnknownName, "→now()"},
		{"nwo() == t", 0, RuleUnknownFunc, "→now"},
		{"len(s) == 1", 0, RuleUnknownFunc, "len"},
		{"foo(1)", 0, RuleUnknownFunc, "foo"},
		{"now(1) == t", 0, RuleType, "no argument"},
		{"t > t - duration(s)", 8, RuleType, "string literal"},
		{"t > t - duration('1d')", 8, RuleLiteral, "not a duration"},
		{"t > t - duration('1ns')", 8, RuleLiteral, "microseconds"},
		{"t > t - duration('900000h')", 8, RuleLiteral, "100 years"},
		{"id == 1", 0, RuleNotReadable, "id"},
		{"status == 'x'", 0, RuleNotReadable, "status"},
		{"1 < version", 4, RuleNotReadable, "version"},
		{"args == 1", 0, RuleUnsupported, "args.NAME"},
		{"i.x == 1", 0, RuleUnsupported, "member"},
		{"$env['i'] == 1", 0, RuleUnsupported, "→i"},
		{"$env.i == 1", 0, RuleUnsupported, "→i"},
		{"t.Year() == 1", 2, RuleUnsupported, "method"},
		{"s[0:1] == 'a'", 1, RuleUnsupported, "slice"},
		{"i in 1..3", 2, RuleUnsupported, "list"},
		{"s in args.s", 2, RuleUnsupported, "list"},
		{"i == [1]", 5, RuleUnsupported, "list"},
		{"'a' contains 'b'", 4, RuleUnsupported, "contains"},
		{"s matches 'b'", 2, RuleUnsupported, "matches"},
		{"i ** 2 == 1", 2, RuleUnsupported, "**"},
		{"i ^ 2 == 1", 2, RuleUnsupported, "^"},
		{"+i == 1", 0, RuleUnsupported, `"+"`},
		{"i // 2", 2, RuleUnsupported, "drops the fraction"},
		{"i == 1 /* = */", 7, RuleUnsupported, "comments"},
		{"let x = 1; x", 6, RuleSyntax, "=="},
		{"i; b", 1, RuleUnsupported, "semicolon"},
		{"b;", 1, RuleUnsupported, "semicolon"},
		{"if b { b } else { b }", 5, RuleUnsupported, "blocks"},
		{"b ?: b", 0, RuleUnsupported, "??"},
		{"'1s' | duration()", 5, RuleUnsupported, "pipes"},
		{"args?.i == 1", 4, RuleUnsupported, "?."},
		{"b'x' == y", 0, RuleUnsupported, "bytes"},
		{"#", 0, RuleUnsupported, "#"},
		{"::now() == t", 0, RuleUnsupported, "::"},
		{"any([1], {# > 1})", 9, RuleUnsupported, "maps"},
		{`s == "\u0000"`, 5, RuleLiteral, "U+0000"},
		{`s == "\ud800"`, 5, RuleLiteral, "surrogate"},
		{"i", 0, RuleType, "this is an int"},
		{"1", 0, RuleType, "where a bool is due"},
		{"nil", 0, RuleNil, "never holds"},
		{"s == 1", 5, RuleType, "the number 1 where a string is due"},
		{"s == i", 2, RuleType, "between a string and an int"},
		{"i == f", 2, RuleType, "between"},
		{"i == d", 2, RuleType, "between"},
		{"f == d", 2, RuleType, "between"},
		{"i + f == 1", 2, RuleType, "between"},
		{"y == y", 2, RuleType, "bytes"},
		{"j == args.j", 2, RuleType, "json"},
		{"b < b", 2, RuleType, "bool"},
		{"y in [y]", 2, RuleType, "bytes"},
		{"i in [1, s]", 2, RuleType, "between"},
		{"i in []", 5, RuleType, "empty"},
		{"i in [nil]", 6, RuleNil, "never found"},
		{"nil in [1]", 0, RuleNil, "always nil"},
		{"not s == 'x'", 0, RuleType, "binds tighter"},
		{"s and b", 2, RuleType, "takes bools"},
		{"b or nil", 5, RuleNil, "operand"},
		{"s - s == s", 2, RuleType, "not defined for string"},
		{"-s == s", 0, RuleType, "takes a number"},
		{"-b", 0, RuleType, "takes a number"},
		{"f % 2 == 1", 2, RuleType, "not defined for float"},
		{"d * d == 1", 2, RuleType, "by an int only"},
		{"d * 1.5 == 1", 2, RuleType, "by an int only"},
		{"1.5 * 1.5 == d", 4, RuleType, "by an int only"},
		{"d * f == 1", 2, RuleType, "between"},
		{"d / 2 == 1", 2, RuleType, "rounded"},
		{"d % 2 == 1", 2, RuleType, "rounded"},
		{"1.5 / 2 == 1", 4, RuleType, "rounded"},
		{"i == 1.5", 5, RuleLiteral, "1.5 is no int"},
		{"i == 1e30", 5, RuleLiteral, "no int"},
		{"i == 1e300", 5, RuleLiteral, "no int"},
		{"d == 0.1234567", 5, RuleLiteral, "6 digits"},
		{"d == 1000000000000", 5, RuleLiteral, "range"},
		{"f == 9007199254740993", 5, RuleLiteral, "exactly"},
		{"f == 9007199254740993.0", 5, RuleLiteral, "exactly"},
		{"f == 900719925474099.3e1", 5, RuleLiteral, "exactly"},
		{"f == 9007199254740993e0", 5, RuleLiteral, "exactly"},
		{"f == 1e-999", 5, RuleLiteral, "exactly"},
		{"f * 1e31 > 0", 4, RuleLiteral, "2^100"},
		{"10 / (i / 2) == 1", 3, RuleDivisor, "divisor"},
		{"10 % (1 + i % 2) == 1", 3, RuleDivisor, "divisor"},
		{"f / (b ? f / 2 : 1) == 1", 2, RuleDivisor, "divisor"},
		{"f * f * f * f * f * f * f * f * f * f * f > 0", 22, RuleFactors, "too many"},
		{"f * (b ? 1e31 : f) > 0", 9, RuleLiteral, "2^100"},
		{"f * f * f * (fn ?? (f * f)) * (b ? f * f : f) > 0", 28, RuleFactors, "too many"},
		{"i == nil", 2, RuleNil, "never nil"},
		{"(i + 1) != nil", 8, RuleNil, "never nil"},
		{"nil == nil", 4, RuleNil, "always nil"},
		{"in_ + nil == 1", 6, RuleNil, "always nil"},
		{"in_ < nil", 6, RuleNil, "always nil"},
		{"(i ?? 1) == 1", 3, RuleNil, "never nil"},
		{"in_ + i ?? 1 == 1", 8, RuleNil, "tighter"},
		{"(in_ ?? nil) == 1", 5, RuleNil, "changes nothing"},
		{"nil ? b : b", 0, RuleNil, "never holds"},
		{"i ? b : b", 0, RuleType, "condition of ?:"},
		{"(b ? 1 : 'a') == 1", 5, RuleType, "the number 1 where a string"},
		{"t + t == t", 2, RuleType, "not defined for time"},
		{"t * 2 == t", 2, RuleType, "durations"},
		{"duration('1s') + t == t", 15, RuleType, "time first"},
		{"t - t == t", 6, RuleType, "between a duration and a time"},
		{"(b ? duration('1s') : duration('2s')) < t - t", 1, RuleType, "only compared"},
		{"t + (t - t) == t", 2, RuleType, "durations"},
		{"t - t in [duration('1s')]", 6, RuleType, "duration"},
		{"t == '2026-01-01'", 2, RuleType, "between a time and a string"},
		{strings.Repeat("(", 1_000_000), 0, RuleSize, "2048"},
		{strings.Repeat("-", 1_000_000), 0, RuleSize, "2048"},
		{strings.Repeat("not ", 45) + "b", 0, RuleSize, "deeper"},
		{"i in [" + strings.Repeat("1,", 300) + "1]", 0, RuleSize, "operands"},
		{strings.Repeat("(i<", 60) + "i" + strings.Repeat("<i)", 60), 0, RuleSize, ""},
	} {
		e, problems := ParseCondition(c.src, testEnv)
		if e != nil || len(problems) == 0 {
			t.Errorf("%q passes", cut(c.src))
			continue
		}
		p := problems[0]
		if p.Offset != c.offset || p.Rule != c.rule || !strings.Contains(texts(problems[:1]), c.says) {
			t.Errorf("%q: want %d %s %q, got\n%s", cut(c.src), c.offset, c.rule, c.says, texts(problems))
		}
	}
}

func TestAllFindingsAtOnce(t *testing.T) {
	t.Parallel()
	_, problems := ParseCondition("amont == 1 and args.totl > 2 or foo(1)", testEnv)
	if got := texts(problems); len(problems) != 3 {
		t.Errorf("want three findings, got\n%s", got)
	}
	_, problems = ParseCondition("s == 1 and (i == 1.5 or y == y) and not i", testEnv)
	if got := texts(problems); len(problems) != 4 {
		t.Errorf("want four findings, got\n%s", got)
	}
	_, problems = ParseCondition("1 < amont < 3", testEnv)
	if len(problems) != 1 {
		t.Errorf("the shared operand of a chain is reported twice:\n%s", texts(problems))
	}
}

func TestAssignments(t *testing.T) {
	t.Parallel()
	v := func(typ Type, null bool, scale int) Var {
		return Var{Name: "x", Type: typ, Nullable: null, Scale: scale}
	}
	for _, c := range []struct {
		src    string
		target Var
		rule   string // "" is legal
		says   string
	}{
		{"i + 1", v(Int, false, -1), "", ""},
		{"1 + 2", v(Float, false, -1), "", ""},
		{"'manual'", v(String, false, -1), "", ""},
		{"nil", v(Bytes, true, -1), "", ""},
		{"nil", v(Int, false, -1), RuleNotNullable, "not nullable"},
		{"in_", v(Int, false, -1), RuleNotNullable, "??"},
		{"in_ ?? 0", v(Int, false, -1), "", ""},
		{"in_ + 1", v(Int, true, -1), "", ""},
		{"bn ? 1 : 2", v(Int, false, -1), "", ""}, // a nil condition takes the other side
		{"args.in_ ?? in_", v(Int, true, -1), "", ""},
		{"now()", v(Time, false, -1), "", ""},
		{"t + duration('1h')", v(Time, false, -1), "", ""},
		{"duration('1h')", v(Time, false, -1), RuleType, "cannot be stored"},
		{"t - t", v(Time, false, -1), RuleType, "cannot be stored"},
		{"i", v(String, false, -1), RuleType, `"x" is a string, this is an int`},
		{"1", v(String, false, -1), RuleType, "where a string is due"},
		{"i", v(Decimal, false, -1), RuleType, "is a decimal"},
		{"1", v(Decimal, false, -1), "", ""},
		{"2 * 3", v(Decimal, false, -1), "", ""},
		{"2 * 1.5", v(Float, false, -1), "", ""},
		{"2 * 1.5", v(Decimal, false, -1), "", ""},
		{"0.125", v(Decimal, false, 2), RuleLiteral, "keeps 2 digits"},
		{"b ? 0.12 : 0.125", v(Decimal, false, 2), RuleLiteral, "keeps 2 digits"},
		{"dn ?? 0.125", v(Decimal, false, 2), RuleLiteral, "keeps 2 digits"},
		{"d", v(Decimal, false, 2), "", ""},
		{"args.j", v(JSON, false, -1), "", ""},
		{"jn ?? args.j", v(JSON, false, -1), "", ""},
		{"b ? yn : args.y", v(Bytes, true, -1), "", ""},
		{"b ? nil : nil", v(Int, true, -1), "", ""},
	} {
		e, problems := ParseAssignment(c.src, testEnv, c.target)
		switch {
		case c.rule == "" && (e == nil || len(problems) > 0):
			t.Errorf("%s: %s", c.src, texts(problems))
		case c.rule != "" && (len(problems) == 0 || problems[0].Rule != c.rule || !strings.Contains(problems[0].Message, c.says)):
			t.Errorf("%s: want %s %q, got %s", c.src, c.rule, c.says, texts(problems))
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for src, name := range map[string]string{
		"sn != args.s":                             "sn",
		"not (sn == args.s)":                       "sn",
		"args.in_ not in [1, 2]":                   "args.in_",
		"not bn":                                   "bn",
		"sn == nil or sn != args.s":                "",
		"sn != nil and sn != args.s":               "",
		"sn != nil ? sn != 'x' : true":             "",
		"sn == nil ? true : sn != 'x'":             "",
		"not (sn == nil) and sn != 'x'":            "",
		"(sn != nil and bn != nil) and sn != 'x'":  "",
		"(sn == nil or bn == nil) or not bn":       "",
		"sn == nil and sn != 'x'":                  "sn",
		"(sn ?? '') != args.s":                     "",
		"(sn != args.s) ?? true":                   "",
		"(not (sn == 'x' and bn)) ?? true":         "",
		"(bn and sn != 'x') ?? true":               "",
		"bn ?? (sn != 'x')":                        "sn",
		"(sn != 'x' ? bn : bn) ?? true":            "sn",
		"sn == 'x'":                                "",
		"s != args.s":                              "",
		"bn == nil or sn != 'x'":                   "sn",
		"(b ? sn : 'x') != 'x'":                    "sn",
		"sn == nil or not (sn == 'x' or sn == '')": "",
	} {
		e, problems := ParseCondition(src, testEnv)
		if e == nil {
			t.Errorf("%s: %s", src, texts(problems))
			continue
		}
		switch {
		case name == "" && len(problems) > 0:
			t.Errorf("%s: %s", src, texts(problems))
		case name != "" && (len(problems) != 1 || !problems[0].Warning || problems[0].Name != name):
			t.Errorf("%s: want a warning about %s, got %s", src, name, texts(problems))
		}
	}
}

func TestWhatAnExpressionReads(t *testing.T) {
	t.Parallel()
	e, _ := ParseCondition("i + 1 > args.i and s == args.s and i < 3 and t < now()", testEnv)
	if got := fmt.Sprint(e.Fields(), e.Args(), e.ReadsField("s"), e.ReadsField("d"), e.ReadsNow(), IsSimple(e)); got != "[i s t] [i s] true false true false" {
		t.Error(got)
	}
	for src, want := range map[string]bool{"1": true, "i": true, "args.i": true, "-1": true, "-i": false, "i + 1": false, "nil": true} {
		e, problems := ParseAssignment(src, testEnv, Var{Type: Int, Nullable: true})
		if e == nil || IsSimple(e) != want {
			t.Errorf("IsSimple(%s) is not %v %v", src, want, problems)
		}
	}
}

func TestReserved(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"args", "nil", "null", "now", "in", "if", "endsWith"} {
		if !Reserved(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	for _, v := range testEnv.Fields {
		if Reserved(v.Name) {
			t.Errorf("%s is reserved", v.Name)
		}
	}
}

// The largest sources must be refused or read quickly, whatever they hold.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"(", "-", "[", "not ", "!", "i<(", "i?", "i?i:", "i??", "{", "'", "`", "i in [", "args.", "1.", "&", "(i<i<", "(1+", "1*(", "i/(", "b?(b?"} {
		for _, n := range []int{2048 / len(unit), 1_000_000 / len(unit)} {
			begin := time.Now()
			_, problems := ParseCondition(strings.Repeat(unit, n), testEnv)
			if len(problems) == 0 {
				t.Errorf("%q times %d passes", unit, n)
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("%q times %d takes %v", unit, n, took)
			}
		}
	}
}
