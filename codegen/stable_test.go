package codegen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fsmgen/fsmgen/definitions"
)

// permuted writes a definition with the keys of every mapping but the states, whose
// order means something, in random order.
func permuted(t *testing.T, canonical []byte, rng *rand.Rand) []byte {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var b bytes.Buffer
	permute(t, dec, &b, rng, "")
	return b.Bytes()
}

func permute(t *testing.T, dec *json.Decoder, b *bytes.Buffer, rng *rand.Rand, key string) {
	t.Helper()
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	delim, nested := token.(json.Delim)
	if !nested {
		text, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		return
	}
	var members []string
	for dec.More() {
		var m bytes.Buffer
		name := ""
		if delim == '{' {
			token, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			name = token.(string)
			fmt.Fprintf(&m, "%q: ", name)
		}
		permute(t, dec, &m, rng, name)
		members = append(members, m.String())
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	if delim == '{' && key != "states" {
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	brackets := map[json.Delim]string{'{': "{}", '[': "[]"}[delim]
	b.WriteString(brackets[:1] + strings.Join(members, ", ") + brackets[1:])
}

func TestSameMeaningGivesSameBytes(t *testing.T) {
	zone, dir := time.Local, t.TempDir()
	t.Cleanup(func() { time.Local = zone })
	cases := goldenCases(t)
	t.Chdir(dir)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range cases {
		want := generateOne(t, c.def, Options{})
		for i := range 50 {
			time.Local = time.FixedZone("elsewhere", (i-25)*1800)
			text := permuted(t, c.def.Canonical(), rng)
			m, err := definitions.Parse("other/place/"+c.def.Source, text)
			if err != nil {
				t.Fatalf("%s:\n%v\n%s", c.name, err, text)
			}
			if got := generateOne(t, m, Options{}); !bytes.Equal(got, want) {
				t.Fatalf("%s: run %d differs:\n%s", c.name, i, cmp.Diff(string(want), string(got)))
			}
		}
	}
}

func TestAddingAStateOnlyAddsLines(t *testing.T) {
	m, err := definitions.Load("testdata/OrderWithEverything/order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/OrderWithEverything/order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	grown := strings.Replace(string(text), "groups:", "  a_state_with_a_very_long_name: {final: true}\ngroups:", 1) +
		"  zz_lose: {from: shipped, to: a_state_with_a_very_long_name}\n"
	bigger, err := definitions.Parse("order.yaml", []byte(grown))
	if err != nil {
		t.Fatal(err)
	}
	before := lines(generateOne(t, m, Options{}))
	after := lines(generateOne(t, bigger, Options{}))
	missing := 0
	for _, line := range before {
		i := slices.Index(after, line)
		if i < 0 {
			// The hash, and the last members of the definition, which get a comma.
			if !strings.HasPrefix(line, "const DefinitionHash") && !strings.HasPrefix(line, `    "`) {
				t.Errorf("changed: %s", line)
			}
			missing++
			continue
		}
		after = after[i+1:]
	}
	if missing > 3 {
		t.Errorf("%d lines changed", missing)
	}
}

func lines(source []byte) []string { return strings.Split(string(source), "\n") }

// TestLinesPerTransition counts what a transition adds beside handles.
func TestLinesPerTransition(t *testing.T) {
	const most = 40
	text := "machine: long\ntable: {name: longs}\nfields: {total: {type: int}}\ninitial: s0\nstates:\n  s0:\n  s1: {final: true}\ntransitions:\n"
	const each = "  t%d: {doc: 'What it does.', from: s0, to: s1, args: {a: int, b: 'string?'}, set: {total: args.a}}\n"
	size := func(n int) int {
		full := text
		for i := range n {
			full += fmt.Sprintf(each, i)
		}
		m, err := definitions.Parse("long.yaml", []byte(full))
		if err != nil {
			t.Fatal(err)
		}
		source := string(generateOne(t, m, Options{}))
		before, rest, ok := strings.Cut(source, "\n// Handle is a row in a state")
		_, after, found := strings.Cut(rest, "\n// fsmOrNil is")
		if !ok || !found {
			t.Fatal("cannot find the handles in the generated code")
		}
		return len(lines([]byte(before + after)))
	}
	if per := (size(11) - size(1)) / 10; per > most {
		t.Errorf("%d lines for each transition, want at most %d", per, most)
	} else {
		t.Logf("%d lines for each transition", per)
	}
}

func TestGofmtChangesNothing(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*_fsm.go")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := format.Source(source); err != nil || !bytes.Equal(again, source) {
			t.Errorf("%s: %v\n%s", path, err, cmp.Diff(string(source), string(again)))
		}
		if !IsGenerated(source) || !strings.HasPrefix(string(source), Header+"\n// source: ") {
			t.Errorf("%s does not begin with the header", path)
		}
	}
}
