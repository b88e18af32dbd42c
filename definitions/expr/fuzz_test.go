package expr

import (
	"testing"
	"unicode/utf8"
)

// FuzzParse holds that no source panics, that findings lie inside it, and that what is
// read can be written, read again and evaluated.
func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"", "amount == args.i", "i + 1 >= args.total", "s in ['a', \"b\", `c`]", "not (in_ ?? 0) > 1", "1 < i < 3", "b ? 1 : 2.5 == f",
		"t + duration('1h') < now()", "d * 2 == 1.50 // x", "i = 1", "args['i'] == -9223372036854775808", "i == 9223372036854775808",
		"((((((((((", "------------1", "[[[[[[[", "'\\ud800'", "\"\\u{10FFFF}\" == s", "支付 == 0x1F_FF", "{", "a;b", "x | y()", "$env['i']", "#", "b?:b", "1e999999999 == d", ".5 == d", "1..2",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, typ := range []Type{Bool, Int, String, Decimal} {
			e, problems := ParseAssignment(src, testEnv, Var{Name: "x", Type: typ, Nullable: true, Scale: 2})
			for _, p := range problems {
				if p.Offset < 0 || p.Offset > utf8.RuneCountInString(src) || p.Message == "" || p.Rule == "" {
					t.Fatalf("%q: %+v", src, p)
				}
			}
			if e == nil {
				if len(problems) == 0 {
					t.Fatalf("%q is refused without a finding", src)
				}
				continue
			}
			in := testInput(evalFields, evalArgs)
			got, err := e.Assign(in, ScaleOnly(2))
			_ = e.Explain(in)
			text := e.Root.String()
			if len(text) > maxSource {
				continue
			}
			again, problems := ParseAssignment(text, testEnv, Var{Name: "x", Type: typ, Nullable: true, Scale: 2})
			if again == nil {
				t.Fatalf("%q is written as %q, which is refused: %s", src, text, texts(problems))
			}
			got2, err2 := again.Assign(in, ScaleOnly(2))
			if (err == nil) != (err2 == nil) || !Equal(typ, got, got2) {
				t.Fatalf("%q = %v, %v; %q = %v, %v", src, got, err, text, got2, err2)
			}
		}
	})
}
