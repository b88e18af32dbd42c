package definitions

import (
	"errors"
	"fmt"
	"go/token"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestGoName(t *testing.T) {
	tests := []struct{ name, goName, suffix string }{
		{"pay", "Pay", "Pay"},
		{"payment_id", "PaymentID", "PaymentID"},
		{"order-created", "OrderCreated", "OrderCreated"},
		{"WAIT_BUYER_PAY", "WaitBuyerPay", "WaitBuyerPay"},
		{"WAIT-BUYER-PAY", "WaitBuyerPay", "WaitBuyerPay"},
		{"PAID", "Paid", "Paid"},
		{"A", "A", "A"},
		{"ID", "ID", "ID"},
		{"URL_ID", "URLID", "URLID"},
		{"orderId", "OrderID", "OrderID"},
		{"paymentMethod", "PaymentMethod", "PaymentMethod"},
		{"PaidOut", "PaidOut", "PaidOut"},
		{"httpServer", "HTTPServer", "HTTPServer"},
		{"utf8_name", "UTF8Name", "UTF8Name"},
		{"2fa-pending", "X2faPending", "2faPending"},
		{"3ds", "X3ds", "3ds"},
		{"0123", "X0123", "0123"},
		{"1e3", "X1e3", "1e3"},
		{"2FA", "X2fa", "2fa"},
		{"no", "No", "No"},
		{"type", "Type", "Type"},
		{"支付", "X支付", "支付"},
		{"支付_ok", "X支付Ok", "支付Ok"},
		{"état", "État", "État"},
		{"оплачен", "Оплачен", "Оплачен"},
		{"ОПЛАЧЕН", "Оплачен", "Оплачен"},
		{"مدفوع", "Xمدفوع", "مدفوع"},
		{"_hidden", "Hidden", "Hidden"},
		{"a__b", "AB", "AB"},
		{"a_", "A", "A"},
		{"payID2", "PayID2", "PayID2"},
		{"ǆabc", "Ǆabc", "Ǆabc"},
	}
	for _, tt := range tests {
		if got := GoName(tt.name); got != tt.goName {
			t.Errorf("GoName(%q) = %q, want %q", tt.name, got, tt.goName)
		}
		if got := GoSuffix(tt.name); got != tt.suffix {
			t.Errorf("GoSuffix(%q) = %q, want %q", tt.name, got, tt.suffix)
		}
	}
}

func FuzzGoName(f *testing.F) {
	for _, s := range []string{"pay", "payment_id", "WAIT_BUYER_PAY", "2fa-pending", "支付", "ǆ", "a__b", "orderId", "ß", "ŉ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		l := &loader{findings: &findings{}}
		if !l.checkStateName(&node{value: name}, "a state") {
			return
		}
		goName := GoName(name)
		if !token.IsIdentifier(goName) || !token.IsExported(goName) {
			t.Errorf("GoName(%q) = %q, which is no exported identifier", name, goName)
		}
		if !token.IsIdentifier("State" + GoSuffix(name)) {
			t.Errorf("State%s is no identifier", GoSuffix(name))
		}
		if first, _ := utf8.DecodeRuneInString(goName); !unicode.IsUpper(first) {
			t.Errorf("GoName(%q) = %q begins small", name, goName)
		}
	})
}

func TestPackage(t *testing.T) {
	for name, want := range map[string]string{
		"order": "order", "order_item": "orderitem", "import": "importfsm", "type": "typefsm", "go": "gofsm",
		"main": "mainfsm", "ma_in": "mainfsm", "init": "initfsm", "documentation": "documentationfsm",
		"string": "string", "context": "context", "errors": "errors", "fsm": "fsm", "test": "test", "a1": "a1",
	} {
		if got := (&Machine{Name: name}).Package(); got != want {
			t.Errorf("Package of %q = %q, want %q", name, got, want)
		}
		if got := (&Machine{Name: name}).Package(); !token.IsIdentifier(got) {
			t.Errorf("Package of %q = %q, which is no identifier", name, got)
		}
	}
}

// minimal returns a definition with these names in it.
type minimal struct {
	machine, table, extra string
	states, transitions   []string
	fields, args, groups  []string
	guard, emit, journal  string
}

func (m minimal) yaml() []byte {
	def := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	var b strings.Builder
	fmt.Fprintf(&b, "machine: %s\ntable: {name: %s%s}\n", def(m.machine, "order"), def(m.table, "orders"), m.extra)
	if len(m.fields) > 0 {
		b.WriteString("fields:\n")
		for _, f := range m.fields {
			fmt.Fprintf(&b, "  %s: {type: int}\n", f)
		}
	}
	b.WriteString("initial: first\nstates:\n  first:\n")
	for _, s := range m.states {
		fmt.Fprintf(&b, "  %s:\n", s)
	}
	b.WriteString("  last: {final: true}\n")
	if len(m.groups) > 0 {
		b.WriteString("groups:\n")
		for _, g := range m.groups {
			fmt.Fprintf(&b, "  %s: [first]\n", g)
		}
	}
	b.WriteString("transitions:\n")
	for i, s := range m.states {
		fmt.Fprintf(&b, "  enter%d: {from: first, to: %s}\n  leave%d: {from: %s, to: last}\n", i, s, i, s)
	}
	b.WriteString("  finish:\n    from: first\n    to: last\n")
	if len(m.args) > 0 {
		b.WriteString("    args:\n")
		for _, a := range m.args {
			fmt.Fprintf(&b, "      %s: int\n", a)
		}
	}
	if m.guard != "" {
		fmt.Fprintf(&b, "    guard: %s\n", m.guard)
	}
	if m.emit != "" {
		fmt.Fprintf(&b, "    emit: %s\n", m.emit)
	}
	for _, name := range m.transitions {
		fmt.Fprintf(&b, "  %s: {from: first, to: last}\n", name)
	}
	if m.journal != "" {
		fmt.Fprintf(&b, "journal: %s\n", m.journal)
	}
	return []byte(b.String())
}

// check holds that a definition has exactly these findings, given as
// "line:column rule"; warnings are left out.
func check(t *testing.T, data []byte, want ...string) Problems {
	t.Helper()
	_, err := Parse("x.yaml", data)
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		if !p.Warning {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Rule))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("findings:\n%v\nwant:\n%s\nin:\n%s", problems, strings.Join(want, "\n"), data)
	}
	return problems
}

func TestLegalNames(t *testing.T) {
	check(t, minimal{
		states:      []string{"no", "on", "yes", "off", "y", "n", "0123", "1e3", "true", "2024-01-01", "0x1F", "2fa-pending", "3ds", "default", "支付", "état", `"null"`, "a-b_c", "value", "error"},
		transitions: []string{"string", "error", "scan", "value", "state", "new", "close", "init", "main", "type", "func", "range", "select", "go", "no2", "on", "off", "is", "unwrap", "format", "seek"},
		args:        []string{"ctx", "tx", "sql", "time", "err", "db", "len", "type", "func", "id", "status", "version", "支付", "_x"},
		fields:      []string{"type", "func", "ctx", "count", "len", "支付", "_x", "all"},
		guard:       "map",
	}.yaml())
	for _, machine := range []string{"import", "type", "context", "errors", "fsm", "string", "init", "main", "no", "on", "a1", "a_b", "order_test", "order_linux"} {
		check(t, minimal{machine: machine}.yaml())
	}
	for _, table := range []string{"order", "public.order", "select", "Bestellungen", "订单", "\"my table\"", "a-b", "a.b"} {
		check(t, minimal{table: table}.yaml())
	}
}

// TestNamesStayAsWritten: a bare name and a quoted one are one definition.
func TestNamesStayAsWritten(t *testing.T) {
	bare := "machine: order\ntable: {name: orders}\ninitial: no\nstates: {no: , on: , yes: , off: , y: , n: {final: true}, 0123: {final: true}, 1e3: {final: true}, true: {final: true}}\n" +
		"transitions: {on: {from: [off, no], to: on}, no: {from: [on], to: no}, up: {from: no, to: yes}, up2: {from: yes, to: off}, up3: {from: no, to: y}, up4: {from: y, to: n}, x1: {from: y, to: 0123}, x2: {from: y, to: 1e3}, x3: {from: y, to: true}}\n"
	quoted := bare
	for _, name := range []string{"0123", "1e3", "true"} {
		quoted = strings.ReplaceAll(quoted, name+": {final", fmt.Sprintf("%q: {final", name))
		quoted = strings.ReplaceAll(quoted, "to: "+name, fmt.Sprintf("to: '%s'", name))
	}
	for _, name := range []string{"no", "on", "off", "yes", "y", "n"} {
		quoted = strings.ReplaceAll(quoted, " "+name+": ", fmt.Sprintf(" %q: ", name))
		quoted = strings.ReplaceAll(quoted, ": "+name+"}", fmt.Sprintf(": '%s'}", name))
	}
	quoted = strings.Replace(quoted, "final: ''", "final: ", 1)
	a, err := Parse("a.yaml", []byte(bare))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse("a.yaml", []byte(quoted))
	if err != nil {
		t.Fatalf("%v in\n%s", err, quoted)
	}
	if string(a.Canonical()) != string(b.Canonical()) {
		t.Errorf("quoted names differ:\n%s\n%s", a.Canonical(), b.Canonical())
	}
	for i, want := range []string{"no", "on", "yes", "off", "y", "n", "0123", "1e3", "true"} {
		if s := a.States[i]; s.Name != want || s.Value != want {
			t.Errorf("state %d = %q, holding %v; want %q", i, s.Name, s.Value, want)
		}
	}
}

func TestIllegalNames(t *testing.T) {
	tests := []struct {
		title string
		def   minimal
		want  []string
	}{
		{"state with a space", minimal{states: []string{"a b"}}, []string{"6:3 bad-name"}},
		{"state with a slash", minimal{states: []string{"a/b"}}, []string{"6:3 bad-name"}},
		{"state beginning with _", minimal{states: []string{"_a"}}, []string{"6:3 bad-name"}},
		{"state with a no-break space", minimal{states: []string{"paid\u00a0"}}, []string{"6:3 bad-name"}},
		{"state with a combining mark alone", minimal{states: []string{"a\u093e"}}, []string{"6:3 bad-name"}},
		{"state of 65 bytes", minimal{states: []string{strings.Repeat("a", 65)}}, []string{"6:3 bad-name"}},
		{"state called << in quotes", minimal{states: []string{`"<<"`}}, []string{"6:3 bad-name"}},
		{"state with a Hangul filler", minimal{states: []string{"a\u3164b"}}, []string{"6:3 bad-name", "6:4 invisible-character", "9:30 invisible-character", "10:19 invisible-character"}},
		{"machine with a capital", minimal{machine: "Order"}, []string{"1:10 bad-name"}},
		{"machine with a dash", minimal{machine: "order-item"}, []string{"1:10 bad-name"}},
		{"machine with a leading digit", minimal{machine: "2fa"}, []string{"1:10 bad-name"}},
		{"field with a dash", minimal{fields: []string{"a-b"}}, []string{"4:3 bad-name"}},
		{"field with a leading digit", minimal{fields: []string{"2a"}}, []string{"4:3 bad-name"}},
		{"field that is a word of the language", minimal{fields: []string{"args", "in", "now", `"nil"`}}, []string{"4:3 reserved-name", "5:3 reserved-name", "6:3 reserved-name", "7:3 reserved-name"}},
		{"arg that is a word of the language", minimal{args: []string{"not", "let"}}, []string{"12:7 reserved-name", "13:7 reserved-name"}},
		{"field of underscores", minimal{fields: []string{"__"}}, []string{"4:3 bad-name"}},
		{"fields called like the row's own", minimal{fields: []string{"i_d", "Status", "ver_sion"}, extra: ", id: oid, status: st, version: v"}, []string{"4:3 reserved-name", "5:3 reserved-name"}},
		{"fields over the engine's columns", minimal{fields: []string{"Ref", "ST"}, extra: ", id: ref, status: st"}, []string{"4:3 duplicate-column", "5:3 duplicate-column"}},
		{"one column for id and version", minimal{extra: ", id: v, version: V"}, []string{"2:39 duplicate-column"}},
		{"hook with a dash", minimal{guard: "a-b"}, []string{"11:12 bad-name"}},
		{"table with a quote", minimal{table: "'a\"b'"}, []string{"2:15 bad-name"}},
		{"table with three parts", minimal{table: "a.b.c"}, []string{"2:15 bad-name"}},
		{"table with an empty schema", minimal{table: ".b"}, []string{"2:15 bad-name"}},
		{"table with a control character", minimal{table: `"a\u0007b"`}, []string{"2:15 bad-name"}},
		{"table ending in a space", minimal{table: `"a "`}, []string{"2:15 bad-name"}},
		{"table with an emoji", minimal{table: "😀"}, []string{"2:15 bad-name"}},
		{"table of 65 characters", minimal{table: strings.Repeat("ä", 65)}, []string{"2:15 bad-name"}},
		{"table of 64 bytes", minimal{table: strings.Repeat("a", 62) + "é"}, []string{"2:15 bad-name"}},
		{"table of 63 bytes", minimal{table: strings.Repeat("s", 63) + "." + strings.Repeat("a", 63)}, nil},
		{"column of 64 bytes", minimal{extra: ", id: " + strings.Repeat("a", 64)}, []string{"2:27 bad-name"}},
		{"field that makes a column of 64 bytes", minimal{fields: []string{strings.Repeat("a", 64)}}, []string{"4:3 bad-name"}},
		{"field over a system column", minimal{fields: []string{"xmin", "CTID", "oid"}}, []string{"4:3 bad-name"}},
		{"column that is a system column", minimal{extra: ", status: ctid"}, []string{"2:31 bad-name"}},
		{"table of SQLite's own", minimal{table: "main.SQLite_x"}, []string{"2:15 bad-name"}},
		{"table in a schema like SQLite's", minimal{table: "sqlite_x.t"}, nil},
		{"table that is the journal", minimal{table: "FSM_journal"}, []string{"2:8 name-collision"}},
		{"topic with a line break", minimal{emit: `"a\nb"`}, []string{"11:11 bad-value"}},
		{"topic that is empty", minimal{emit: `""`}, []string{"11:11 empty-text"}},
		{"state with a mark beside its letter", minimal{states: []string{"e\u0301tat"}}, []string{"6:3 not-nfc"}},
		{"state with the Angstrom sign", minimal{states: []string{"\u212bngstrom"}}, []string{"6:3 not-nfc"}},
		{"state with a compatibility ideograph", minimal{states: []string{"\uf900"}}, []string{"6:3 not-nfc"}},
		{"state with a Korean syllable in pieces", minimal{states: []string{"\u1112\u1161", "\uac00\u11a8", "\uac01\u11a8"}}, []string{"6:3 not-nfc", "7:3 not-nfc"}},
		{"field with a mark beside its letter", minimal{fields: []string{"e\u0301"}}, []string{"4:3 not-nfc"}},
		{"states equal in Go", minimal{states: []string{"a_b", "a-b", "aB"}}, []string{"7:3 name-collision", "8:3 name-collision"}},
		{"states equal but for case", minimal{states: []string{"payed", "PAYED"}}, []string{"7:3 name-collision"}},
		{"states equal by the long s", minimal{states: []string{"sk", "\u017fk"}}, []string{"7:3 name-collision"}},
		{"fields equal in Go", minimal{fields: []string{"pay_id", "payId"}}, []string{"5:3 name-collision"}},
		{"args equal in Go", minimal{args: []string{"pay_id", "payId"}}, []string{"13:7 name-collision"}},
		{"groups equal in Go", minimal{groups: []string{"a_b", "a-b"}}, []string{"9:3 name-collision"}},
		{"transitions equal in Go", minimal{transitions: []string{"pay_id", "pay-ID"}}, []string{"12:3 name-collision"}},
		{"transitions equal by the X of unexported names", minimal{transitions: []string{"2fa", "x2fa"}}, []string{"12:3 name-collision"}},
		{"states that differ where transitions would not", minimal{states: []string{"2fa", "x2fa"}}, nil},
		{"machine called group", minimal{machine: "group"}, []string{"1:10 reserved-name"}},
		{"machine called FSM", minimal{machine: "f_s_m"}, []string{"1:10 reserved-name"}},
		{"machine called hooks", minimal{machine: "hooks"}, []string{"1:10 reserved-name"}},
		{"machine called hook_event", minimal{machine: "hook_event"}, []string{"1:10 reserved-name"}},
		{"hook that go vet refuses", minimal{guard: "read_byte"}, []string{"11:12 reserved-name"}},
		{"reserved transitions", minimal{transitions: []string{"create", "get", "load", "in", "journal", "can", "result"}}, []string{"11:3 reserved-name", "12:3 reserved-name", "13:3 reserved-name", "14:3 reserved-name", "15:3 reserved-name", "16:3 reserved-name", "17:3 reserved-name"}},
		{"transitions go vet refuses", minimal{transitions: []string{"marshal_json", "unmarshal_json", "read_byte", "write_to", "gob_encode", "MarshalXML"}}, []string{"11:3 reserved-name", "12:3 reserved-name", "13:3 reserved-name", "14:3 reserved-name", "15:3 reserved-name", "16:3 reserved-name"}},
		{"machine called machine", minimal{machine: "machine"}, []string{"1:10 reserved-name"}},
		{"machine called state", minimal{machine: "state"}, []string{"1:10 reserved-name"}},
		{"machine called transition", minimal{machine: "transition"}, []string{"1:10 reserved-name"}},
		{"machine called result", minimal{machine: "result"}, []string{"1:10 reserved-name"}},
		{"machine called handle", minimal{machine: "handle"}, []string{"1:10 reserved-name"}},
		{"machine called definition", minimal{machine: "definition"}, []string{"1:10 reserved-name"}},
		{"machine called new", minimal{machine: "new"}, []string{"1:10 reserved-name"}},
		{"machine and state that make New", minimal{machine: "order", states: []string{"s"}, transitions: []string{"x"}}, nil},
		{"a handle that is an args struct", minimal{machine: "pay", states: []string{"args"}, transitions: []string{}}, nil},
		{"a transition whose args struct is a state", minimal{states: []string{"args"}, transitions: []string{"state"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) { check(t, tt.def.yaml(), tt.want...) })
	}
}
