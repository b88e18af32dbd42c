package definitions

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// permuted returns a definition with the keys of every mapping in another order.
// The states' own order is kept unless states is set; lists keep theirs.
func permuted(t testing.TB, data []byte, random *rand.Rand, states bool) []byte {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	shuffle(&root, random, states, "")
	out, err := yaml.Marshal(&root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func shuffle(n *yaml.Node, random *rand.Rand, states bool, key string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		n.Value = "null" // yaml.v3 writes an empty one as ''
	}
	if n.Kind == yaml.MappingNode && (key != "states" || states) {
		random.Shuffle(len(n.Content)/2, func(i, j int) {
			n.Content[2*i], n.Content[2*j] = n.Content[2*j], n.Content[2*i]
			n.Content[2*i+1], n.Content[2*j+1] = n.Content[2*j+1], n.Content[2*i+1]
		})
	}
	for i, child := range n.Content {
		key := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1].Value
		}
		shuffle(child, random, states, key)
	}
}

// legalInputs are all golden definitions without errors.
func legalInputs(t testing.TB) map[string][]byte {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*/canonical.json")
	if err != nil || len(inputs) < 5 {
		t.Fatalf("few legal cases: %v, %v", inputs, err)
	}
	legal := map[string][]byte{}
	for _, path := range inputs {
		dir := filepath.Dir(path)
		data, err := os.ReadFile(filepath.Join(dir, "input.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		legal[filepath.Base(dir)] = data
	}
	return legal
}

func TestKeyOrderDoesNotMatter(t *testing.T) {
	for name, data := range legalInputs(t) {
		t.Run(name, func(t *testing.T) {
			want := mustParse(t, data)
			for seed := range uint64(50) {
				random := rand.New(rand.NewPCG(seed, 0))
				sameMachine(t, want, mustParse(t, permuted(t, data, random, false)))
				if got := mustParse(t, permuted(t, data, random, true)); got.Hash() != want.Hash() {
					t.Fatalf("the order of states changes the hash; canonical forms\n%s\n%s", want.Canonical(), got.Canonical())
				}
			}
		})
	}
}

func TestCanonicalIsReadBack(t *testing.T) {
	for name, data := range legalInputs(t) {
		t.Run(name, func(t *testing.T) {
			want := mustParse(t, data)
			sameMachine(t, want, mustParse(t, want.Canonical()))
		})
	}
}

// TestCommentsAndDocsDoNotMatter: neither changes the hash; docs are kept in the
// canonical form, which generated code prints.
func TestCommentsAndDocsDoNotMatter(t *testing.T) {
	want := mustParse(t, []byte(orderYAML))
	text := strings.ReplaceAll(orderYAML, "\n", " # x\n\n")
	text = strings.Replace(text, "doc: An order from checkout to delivery.", "doc: Another.", 1)
	text = strings.Replace(text, "Total in cents.", "Sum", 1)
	got := mustParse(t, []byte(text))
	if got.Hash() != want.Hash() {
		t.Error("docs or comments change the hash")
	}
	if !strings.Contains(string(got.Canonical()), `"doc": "Another."`) {
		t.Error("the canonical form has no docs")
	}
}

// TestHashKnowsMeaning: every change of meaning changes the hash, a change of
// spelling does not.
func TestHashKnowsMeaning(t *testing.T) {
	base := mustRead(t, "testdata/AllForms/input.yaml")
	want := mustParse(t, []byte(base)).Hash()
	changes := []struct {
		old, new string
		same     bool
	}{
		{"machine: invoice_v2", "machine: invoice_v3", false},
		{"name: sales.invoices", "name: sales.invoice", false},
		{"column: invoice_id, type: int", "column: invoice_id, type: string", false},
		{"version: rev", "version: revision", false},
		{"scale: 2, default: 0.00", "scale: 3, default: 0.00", false},
		{"scale: 2, default: 0.00", "scale: 2, default: 0.01", false},
		{"scale: 2, default: 0.00", "scale: 2, default: 0", true},
		{"column: Remark", "column: remark", false},
		{"initial: [draft, imported]", "initial: [imported, draft]", false},
		{"emit: invoice.created", "emit: invoice.made", false},
		{"aliases: [12, 13]", "aliases: [13, 12]", true},
		{"aliases: [12, 13]", "aliases: [12]", false},
		{"after: 36h", "after: 2160m", true},
		{"after: 36h", "after: 37h", false},
		{"early: [draft, imported]", "early: [imported, draft]", true},
		{"late: [approved, settled]", "late: [approved]", false},
		{`from: "@early"`, "from: [imported, draft]", true},
		{"round: round + 1, approvals: 0", "approvals: 0, round: 'round+1'", true},
		{"round: round + 1, approvals: 0", "round: round + 2, approvals: 0", false},
		{"round: round + 1, approvals: 0", "round: 1 + round, approvals: 0", false},
		{"when: args.round == round", "when: (args.round) == (round)", true},
		{"when: args.round == round", "when: args.round >= round", false},
		{"key: [args.approver, args.round]", "key: [args.round, args.approver]", false},
		{"duplicates: refuse", "duplicates: own", false},
		{"meta: null", "meta: nil", true},
		{"secret: true", "secret: false", false},
		{"reason: string?", "reason: string", false},
		{"reason: string?", "reason: {type: string, optional: true}", true},
		{"guard: credit_ok", "guard: credit_fine", false},
		{"unique: [[number], [ref, round]]", "unique: [[number]]", false},
		{"unique: [[number], [ref, round]]", "unique: [[number], [round, ref]]", true},
		{"duplicates: refuse", "duplicates: accept", false},
		{"lapse: {from", "lapse: {duplicates: accept, from", true},
		{"lapse: {from", "lapse: {duplicates: own, from", false},
		{"guard: credit_ok", "guard: credit_ok\n    when: true", true},
		{"guard: credit_ok", "guard: credit_ok\n    when: round == 1", false},
		{"journal: {table: sales.invoice_log}", "journal: {table: sales.log}", false},
		{`from: "*", to: archived`, "from: [draft, imported, in_review, approved, settled], to: archived", false},
	}
	for _, c := range changes {
		text := strings.Replace(base, c.old, c.new, 1)
		if text == base {
			t.Fatalf("%q is not in the definition", c.old)
		}
		m, err := Parse("x.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", c.new, err)
			continue
		}
		if same := m.Hash() == want; same != c.same {
			t.Errorf("%q for %q: same hash = %v", c.new, c.old, same)
		}
	}
}

func mustParse(t testing.TB, data []byte) *Machine {
	t.Helper()
	m, err := Parse("x.yaml", data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return m
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRandomMachines: what can be written can be read back, whatever the names and
// texts are, and in whatever order it is written.
func TestRandomMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawDefinition(t)
		m, err := Parse("x.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		again, err := Parse("x.yaml", m.Canonical())
		if err != nil {
			t.Fatalf("%v in\n%s", err, m.Canonical())
		}
		if string(again.Canonical()) != string(m.Canonical()) || again.Hash() != m.Hash() {
			t.Fatalf("canonical forms differ:\n%s\n%s", m.Canonical(), again.Canonical())
		}
	})
}

// drawDefinition writes a legal definition: a line of states with jumps, texts of
// any kind in every place that takes text.
func drawDefinition(t *rapid.T) string {
	n := rapid.IntRange(2, 8).Draw(t, "states")
	prose := rapid.StringMatching(`[ -~äö支\n\t'"\\]{0,20}`)
	value := rapid.StringMatching(`[!-~äö支]{1,10}`)
	quote := func(s string) string {
		w := &jsonWriter{}
		w.string(s)
		return w.buf.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "machine: m\ndoc: %s\ntable: {name: t, status: s_%s}\ninitial: x0\n", quote(prose.Draw(t, "doc")+"x"), "a")
	fmt.Fprintf(&b, "fields:\n  f: {type: string, default: %s}\n  g: {type: int}\nstates:\n", quote(value.Draw(t, "default")))
	for i := range n {
		fmt.Fprintf(&b, "  x%d: {value: %s, doc: %s}\n", i, quote(fmt.Sprintf("%d%s", i, value.Draw(t, "value"))), quote(prose.Draw(t, "doc")+"x"))
	}
	b.WriteString("  end: {final: true}\ntransitions:\n")
	for i := range n {
		to := "end"
		if i+1 < n {
			to = fmt.Sprintf("x%d", i+1)
		}
		literal := rapid.StringMatching(`[ -!#-&(-\[\]-~äö]{0,10}`).Draw(t, "literal")
		fmt.Fprintf(&b, "  go%d: {from: x%d, to: %s, set: {f: %s}, when: %s, emit: %s, duplicates: own}\n",
			i, i, to, quote("'"+literal+"'"), quote(fmt.Sprintf("g > %d", i)), quote(value.Draw(t, "topic")))
	}
	return b.String()
}

func FuzzHash(f *testing.F) {
	f.Add([]byte(small), uint64(1))
	f.Add([]byte(orderYAML), uint64(2))
	f.Add([]byte(mustRead(f, "testdata/AllForms/input.yaml")), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		m, err := Parse("x.yaml", data)
		if err != nil {
			return
		}
		again, err := Parse("x.yaml", permuted(t, m.Canonical(), rand.New(rand.NewPCG(seed, 0)), true))
		if err != nil {
			t.Fatalf("%v in a permutation of\n%s", err, m.Canonical())
		}
		if again.Hash() != m.Hash() {
			t.Errorf("hashes differ:\n%s\n%s", m.Canonical(), again.Canonical())
		}
	})
}
