package enginetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/fsmgen/fsmgen/engine"
)

// deaf is a store that applies the first call and reports that its answer got lost, as
// a connection does that breaks after COMMIT.
type deaf struct {
	engine.Store
	heard atomic.Bool
}

// Bind binds the machine to a table that loses the first answer.
func (d *deaf) Bind(ctx context.Context, rules *engine.Rules) (engine.Table, error) {
	t, err := d.Store.Bind(ctx, rules)
	return &deafTable{t, d}, err
}

type deafTable struct {
	engine.Table
	d *deaf
}

var errLost = errors.New("enginetest: the answer got lost")

// Apply applies the call.
func (t *deafTable) Apply(ctx context.Context, tx engine.Tx, call *engine.Call) (engine.Change, error) {
	change, err := t.Table.Apply(ctx, tx, call)
	if err == nil && change.OK && t.d.heard.CompareAndSwap(false, true) {
		return engine.Change{}, &engine.Fault{Class: engine.ClassUnknown, Err: errLost}
	}
	return change, err
}
