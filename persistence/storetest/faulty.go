package storetest

import (
	"context"

	"github.com/fsmgen/fsmgen/engine"
)

// faultyStore lets a test stand between the engine and a store: it may do something
// before a write, lose its answer, or refuse it.
type faultyStore struct {
	engine.Store
	apply  func(call *engine.Call, do func() (engine.Change, error)) (engine.Change, error)
	create func(call *engine.Creation, do func() (engine.Change, error)) (engine.Change, error)
	commit func(err error) error // what Transact is to return instead
}

// Transact hands the answer of the commit to the test.
func (s *faultyStore) Transact(ctx context.Context, fn func(ctx context.Context, tx engine.Tx) error) error {
	err := s.Store.Transact(ctx, fn)
	if s.commit == nil {
		return err
	}
	return s.commit(err)
}

// Bind wraps the table.
func (s *faultyStore) Bind(ctx context.Context, rules *engine.Rules) (engine.Table, error) {
	table, err := s.Store.Bind(ctx, rules)
	if err != nil {
		return nil, err
	}
	return &faultyTable{Table: table, s: s}, nil
}

type faultyTable struct {
	engine.Table
	s *faultyStore
}

// Apply hands the write to the test.
func (t *faultyTable) Apply(ctx context.Context, tx engine.Tx, call *engine.Call) (engine.Change, error) {
	do := func() (engine.Change, error) { return t.Table.Apply(ctx, tx, call) }
	if t.s.apply == nil {
		return do()
	}
	return t.s.apply(call, do)
}

// Create hands the write to the test.
func (t *faultyTable) Create(ctx context.Context, tx engine.Tx, call *engine.Creation) (engine.Change, error) {
	do := func() (engine.Change, error) { return t.Table.Create(ctx, tx, call) }
	if t.s.create == nil {
		return do()
	}
	return t.s.create(call, do)
}
