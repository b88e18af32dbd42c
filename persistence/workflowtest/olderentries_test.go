package workflowtest

import (
	"errors"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// TestEntriesOlderThanARename: what a duplicate was the first time is told in the names
// that states have today.
func TestEntriesOlderThanARename(t *testing.T) {
	before := parse(t, "machine: m\ntable: {name: renamed}\ninitial: fresh\nstates: {fresh: , payed: {final: true}}\ntransitions: {pay: {from: fresh, to: payed}}\n")
	after := parse(t, "machine: m\ntable: {name: renamed}\ninitial: new\nstates: {new: {aliases: [fresh]}, paid: {aliases: [payed], final: true}}\ntransitions: {pay: {from: new, to: paid}}\n")
	for _, k := range databases() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := k.open(t)
			text := "CREATE TABLE renamed (id varchar(64) NOT NULL PRIMARY KEY, status varchar(20) NOT NULL, version bigint NOT NULL)"
			if k.name == "mariadb" {
				text += " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
			}
			_, err := p.db.ExecContext(t.Context(), text)
			check(t, err)
			s := bind(t, k.name, p, before)
			_, err = s.m.Create(t.Context(), engine.Row{"id": "1"})
			check(t, err)
			_, err = s.m.Fire(t.Context(), "pay", "1", nil, engine.WithKey("k"))
			check(t, err)
			m, err := s.eng.Machine(t.Context(), after)
			check(t, err)
			for what, opts := range map[string][]engine.CallOption{"by state": nil, "by key": {engine.WithKey("k")}} {
				res, err := m.Fire(t.Context(), "pay", "1", nil, opts...)
				if err != nil || res.From != "new" || res.To != "paid" || res.State != "paid" {
					t.Errorf("%s: %+v, %v; want new to paid", what, res, err)
				}
			}
		})
	}
}

// TestErasedArgs: an entry whose args were erased, or spoilt, knows no more than none. The
// row tells whether a repeat is one.
func TestErasedArgs(t *testing.T) {
	def := parse(t, `
machine: pay
table: {name: pays}
fields: {ref: {type: string, nullable: true}, owner: {type: string, default: me}}
initial: a
states: {a: , b: {final: true}}
transitions: {pay: {from: a, to: b, args: {ref: string}, set: {ref: args.ref}, identity: [ref]}}
`)
	onEach(t, databases(), func(s *site) {
		for what, text := range map[string]string{"erased": "NULL", "spoilt": `'{"ref":'`} {
			_, err := s.m.Create(s.t.Context(), engine.Row{"id": what})
			check(s.t, err)
			_, err = s.m.Fire(s.t.Context(), "pay", what, engine.Args{"ref": "r"})
			check(s.t, err)
			if what == "spoilt" && s.name == "postgres" { // which keeps nothing there but JSON
				continue
			}
			_, err = s.db.ExecContext(s.t.Context(), "UPDATE fsm_journal SET args = "+text+" WHERE entity_id = '"+what+"' AND transition = 'pay'")
			check(s.t, err)
			if res, err := s.m.Fire(s.t.Context(), "pay", what, engine.Args{"ref": "r"}); err != nil || res.Outcome != engine.AlreadyReached {
				s.t.Errorf("%s: %v, %v", what, res.Outcome, err)
			}
			if _, err := s.m.Fire(s.t.Context(), "pay", what, engine.Args{"ref": "other"}); !errors.Is(err, engine.ErrMismatch) {
				s.t.Errorf("%s, another ref: %v", what, err)
			}
		}
	}, def)
}
