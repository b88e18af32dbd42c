package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
)

// orderText is the machine of most tests: %PAY% stands for what else `pay` says.
//
// Without pay a row can get to cancelled, and to nothing behind paid. reopen undoes
// a payment: it leads back into pay's source.
const orderText = `
machine: order
table: {name: orders}
fields:
  amount: {type: int, default: 0}
  ref:    {type: string, nullable: true}
initial: pending
states: {pending: , paid: , shipped: , disputed: , cancelled: {final: true}}
transitions:
  pay:     {from: pending, to: paid, args: {amount: int, ref: "string?"}, when: amount == args.amount, set: {ref: args.ref}%PAY%}
  ship:    {from: paid, to: shipped}
  dispute: {from: [paid, shipped], to: disputed}
  resolve: {from: disputed, to: paid}
  reopen:  {from: disputed, to: pending}
  cancel:  {from: [pending, paid, shipped], to: cancelled}
`

// ballotText counts votes: the same state is source and target, and keys tell who voted.
const ballotText = `
machine: ballot
table: {name: ballots}
fields: {votes: {type: int, default: 0}, needed: {type: int, default: 2}}
initial: open
states: {open: , closed: {final: true}}
transitions:
  vote:
    from: open
    args: {by: string, weight: int}
    key: [args.by]
    set: {votes: votes + args.weight}
    to: [{state: closed, when: votes + args.weight >= needed}, {state: open}]
  close: {from: open, to: closed, key: required}
`

// orderWith gives the order machine with more said about pay, and lines at the end.
func orderWith(pay string, more ...string) string {
	return strings.Replace(orderText, "%PAY%", pay, 1) + strings.Join(more, "\n")
}

// define reads a definition.
func define(tb testing.TB, text string) *definitions.Machine {
	tb.Helper()
	def, err := definitions.Parse("test.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return def
}

// rulesOf compiles a definition.
func rulesOf(tb testing.TB, text string) *Rules {
	tb.Helper()
	r, err := NewRules(define(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// wantText checks that an error's text says every part.
func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want it to say %q", err, part)
		}
	}
}

// noon is the time of every call in these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }
