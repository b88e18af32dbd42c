package workflowtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
)

// phrase is an expression, and what it is to give.
type phrase struct {
	text string
	meaning
}

// conditions read everything, can be nil, and can be rejected.
func conditions() []phrase {
	return []phrase{
		{"n < 5", means(func(v view) bool { return v.int("n") < 5 })},
		{"n % 2 == 0", means(func(v view) bool { return v.int("n")%2 == 0 })},
		{"m == nil", means(func(v view) bool { return v.row["m"] == nil })},
		{"m > n", func(v view) (any, error) {
			if v.row["m"] == nil {
				return nil, nil
			}
			return v.int("m") > v.int("n"), nil
		}},
		{"not (m < 3)", func(v view) (any, error) {
			if v.row["m"] == nil {
				return nil, nil
			}
			return v.int("m") >= 3, nil
		}},
		{"s == args.y", means(func(v view) bool { return v.row["s"] == v.args["y"] })}, // nil is not true
		{"s in ['a', 'b']", means(func(v view) bool { return v.row["s"] == "a" || v.row["s"] == "b" })},
		{"u == nil or u == s", means(func(v view) bool { return v.row["u"] == nil || v.row["u"] == v.row["s"] })},
		{"args.x != 3", means(func(v view) bool { return v.arg("x") != 3 })},
		{"args.x > 1", means(func(v view) bool { return v.arg("x") > 1 })},
		{"n + args.x > 4", func(v view) (any, error) {
			r, err := sum(v.int("n"), v.arg("x"))
			return test(r, err, func(n int64) bool { return n > 4 })
		}},
		{"10 / args.x > n", func(v view) (any, error) {
			r, err := quotient(10, v.arg("x"))
			return test(r, err, func(q int64) bool { return q > v.int("n") })
		}},
	}
}

// values are right-hand sides, by the field they are for.
func values(field string) []phrase {
	or := func(v view, name string, other any) any {
		if v.row[name] != nil {
			return v.row[name]
		}
		return other
	}
	switch field {
	case "n":
		return []phrase{
			{"n + 1", func(v view) (any, error) { return sum(v.int("n"), 1) }},
			{"n + args.x", func(v view) (any, error) { return sum(v.int("n"), v.arg("x")) }},
			{"m ?? n", means(func(v view) any { return or(v, "m", v.row["n"]) })},
			{"n % args.x", func(v view) (any, error) { return remainder(v.int("n"), v.arg("x")) }},
			{text: "args.x"},
			{"0", means(func(view) any { return int64(0) })},
		}
	case "m":
		return []phrase{{text: "n"}, {text: "nil"}, {text: "args.x"}, {"m + args.x", func(v view) (any, error) {
			if v.row["m"] == nil {
				return nil, nil
			}
			return sum(v.int("m"), v.arg("x"))
		}}}
	case "s":
		return []phrase{
			{"args.y ?? s", means(func(v view) any {
				if v.args["y"] != nil {
					return v.args["y"]
				}
				return v.row["s"]
			})},
			{"u ?? 'b'", means(func(v view) any { return or(v, "u", "b") })},
			{"'a'", means(func(view) any { return "a" })},
		}
	}
	return []phrase{{text: "s"}, {text: "nil"}, {text: "args.y"}}
}

// author writes a definition.
type author struct {
	*rand.Rand
	meaning meanings
	states  []string
	journal bool
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (a *author) chance(percent int) bool { return a.IntN(100) < percent }

func (a *author) quoted(p phrase) string {
	if p.meaning != nil {
		a.meaning[p.text] = p.meaning
	}
	return `"` + p.text + `"`
}

// randomDefinition gives a definition that the loader accepts, and what its
// expressions mean. Equal seeds give equal ones.
func randomDefinition(seed int64) (*definitions.Machine, meanings, string) {
	for try := int64(0); ; try++ {
		a := &author{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(try))), meaning: meanings{}} //nolint:gosec // reproducible on purpose
		text := a.definition(seed)
		if def, err := definitions.Parse("random.yaml", []byte(text)); err == nil {
			return def, a.meaning, text
		}
	}
}

func (a *author) definition(seed int64) string {
	for i := range 3 + a.IntN(3) {
		a.states = append(a.states, fmt.Sprint("s", i))
	}
	a.journal = a.chance(85)
	numeric := a.chance(20)
	var b strings.Builder
	fmt.Fprintf(&b, "machine: random_%d\njournal: %v\ntable: {name: random_%d", seed, a.journal, seed)
	if a.chance(20) {
		b.WriteString(", id: {column: no, type: int}")
	}
	if numeric {
		b.WriteString(", status: {column: st, type: int}")
	}
	b.WriteString("}\nfields: {n: {type: int, default: 0}, m: {type: int, nullable: true}, s: {type: string, default: a}, u: {type: string, nullable: true}}\n")
	fmt.Fprintf(&b, "initial: [%s]\nstates:\n", strings.Join(a.some(1+a.IntN(2)), ", "))
	for i, s := range a.states {
		fmt.Fprintf(&b, "  %s: {%s}\n", s, a.body(i, numeric))
	}
	b.WriteString("transitions:\n")
	for i := range 3 + a.IntN(4) {
		a.transition(&b, fmt.Sprint("t", i))
	}
	return b.String()
}

// some picks n different states, in their order.
func (a *author) some(n int) []string {
	list := slices.Clone(a.states)
	a.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:min(n, len(list))]
	slices.Sort(list)
	return list
}

func (a *author) body(i int, numeric bool) string {
	var parts []string
	switch {
	case numeric:
		parts = append(parts, fmt.Sprint("value: ", 10*i-10))
		if a.chance(30) {
			parts = append(parts, fmt.Sprintf("aliases: [%d]", 10*i-9))
		}
	case a.chance(30):
		parts = append(parts, fmt.Sprintf("value: v%d, aliases: [o%d, p%d]", i, i, i))
	}
	if i > 1 && a.chance(40) {
		parts = append(parts, "final: true")
	}
	return strings.Join(parts, ", ")
}

func (a *author) transition(b *strings.Builder, name string) {
	fields := []string{"n", "m", "s", "u"}
	a.Shuffle(4, func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	common, own := fields[:a.IntN(3)], fields[2:]
	fmt.Fprintf(b, "  %s:\n    args: {x: int, y: \"string?\"}\n    duplicates: %s\n", name, pick(a.Rand, []string{"accept", "own", "refuse"}))
	if a.chance(30) {
		fmt.Fprintf(b, "    when: %s\n", a.quoted(pick(a.Rand, conditions())))
	}
	set := a.set(common)
	switch {
	case slices.Contains(common, "u") && a.chance(40):
		set = strings.Replace(set, `u: "s"`, `u: "args.y"`, 1)
		if strings.Contains(set, `u: "args.y"`) {
			b.WriteString("    identity: [y]\n")
		}
	case a.journal && a.chance(40):
		b.WriteString("    key: " + pick(a.Rand, []string{"required", "required", "args.x"}) + "\n")
	}
	if set != "" {
		fmt.Fprintf(b, "    set: {%s}\n", set)
	}
	b.WriteString("    moves:\n")
	for range 1 + a.IntN(3) {
		a.move(b, own[:a.IntN(3)])
	}
}

func (a *author) set(fields []string) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, f+": "+a.quoted(pick(a.Rand, values(f))))
	}
	return strings.Join(parts, ", ")
}

func (a *author) move(b *strings.Builder, fields []string) {
	from := "[" + strings.Join(a.some(1+a.IntN(3)), ", ") + "]"
	if a.chance(15) {
		from = `"*"`
	}
	fmt.Fprintf(b, "      - from: %s\n", from)
	if a.chance(50) {
		fmt.Fprintf(b, "        when: %s\n", a.quoted(pick(a.Rand, conditions())))
	}
	if set := a.set(fields); set != "" {
		fmt.Fprintf(b, "        set: {%s}\n", set)
	}
	if a.chance(60) {
		fmt.Fprintf(b, "        to: %s\n", pick(a.Rand, a.states))
		return
	}
	b.WriteString("        to:\n")
	targets := a.some(2 + a.IntN(2))
	for i, s := range targets {
		if i == len(targets)-1 && a.chance(60) {
			fmt.Fprintf(b, "          - {state: %s}\n", s)
		} else {
			fmt.Fprintf(b, "          - {state: %s, when: %s}\n", s, a.quoted(pick(a.Rand, conditions())))
		}
	}
}
