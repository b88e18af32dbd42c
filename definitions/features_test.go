package definitions

import "testing"

const everyFeature = `machine: order
table: {name: orders}
fields: {n: {type: int}, s: {type: string, nullable: true}}
initial: a
states: {a: , b: , c: {final: true}}
transitions:
  plain: {from: a, to: b, set: {n: 1, s: null}, key: required}
  cond: {from: a, to: b, when: n == 1}
  branch: {from: a, to: [{state: b, when: n == 2}, {state: c}]}
  many:
    moves:
      - {from: a, to: b, when: n == 3}
      - {from: b, to: c}
  sum: {from: a, to: b, set: {n: n + 1}}
  ident: {from: a, to: b, args: {s: string}, identity: [s], set: {s: args.s}}
  derived: {from: a, to: b, args: {s: string}, key: [args.s]}
  code: {from: a, to: b, guard: g, effect: e, after: x}
unique: [[n]]
`

// TestUnbuilt: a part of the format that is not built is a finding at its place,
// and legal as soon as it is off the list.
func TestUnbuilt(t *testing.T) {
	for name, want := range map[string][]string{
		"when":        {"8:26 unsupported", "12:26 unsupported"},
		"branches":    {"9:25 unsupported"},
		"moves":       {"11:5 unsupported"},
		"arithmetic":  {"14:34 unsupported"},
		"identity":    {"15:46 unsupported"},
		"derived-key": {"16:48 unsupported"},
		"guard":       {"17:26 unsupported"},
		"effect":      {"17:36 unsupported"},
		"after":       {"17:47 unsupported"},
		"unique":      {"18:1 unsupported"},
		"nothing":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			buildAllBut(t, name)
			for _, p := range check(t, []byte(everyFeature), want...) {
				if !p.Warning && p.Name != name {
					t.Errorf("%v names %q", p, p.Name)
				}
			}
		})
	}
}
