package postgres

import (
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
)

// tower is led on where a call is run again, into what a CHECK of the table refuses.
const tower = `
machine: tower
table: {name: towers}
fields: {n: {type: int, default: 0}}
initial: dark
states: {dark: , dim: , lit: {final: true}}
transitions:
  tick: {moves: [{from: dark, to: dim}, {from: dim, to: lit}]}
`

// The answer of dark -> dim is lost; its repeat tries dim -> lit and is refused. The row
// is where this very call has put it.
func TestConstraintAfterALostAnswer(t *testing.T) {
	r, log := recorded(t, tower)
	r.exec(t, "ALTER TABLE towers ADD CHECK (status <> 'lit' OR n > 0)")
	for id, opts := range map[string][]engine.CallOption{"1": nil, "2": {engine.WithKey("k")}} {
		r.create(t, id, nil)
		log.Inject(lose(writes))
		res, err := r.m.Fire(t.Context(), "tick", id, nil, opts...)
		check(t, err)
		if res.Outcome != engine.Applied || res.To != "dim" || res.Version != 2 {
			t.Errorf("%+v", res)
		}
	}
	log.Inject(recorder.Fault{})
	r.whole(t)
}
