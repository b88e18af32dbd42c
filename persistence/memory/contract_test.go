package memory

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

var _ = flag.Bool("long", false, "the long form of the contract")

const contractWait = 200 * time.Millisecond

func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB, ...*definitions.Machine) storetest.Backend {
			return &backend{s: New(WithWait(contractWait))}
		},
		Features: storetest.Features{Forms: []storetest.TxForm{storetest.OwnTx}, OneWriter: true, Wait: contractWait, Reopen: true, Loose: true, Nulls: true, NoDDL: true},
	})
}

// backend reaches the store's data from beside the engine.
type backend struct{ s *Store }

func (b *backend) Store() engine.Store { return b.s }

func (b *backend) Insert(ctx context.Context, def *definitions.Machine, row engine.Row) error {
	return b.s.Put(ctx, def, row)
}

func (b *backend) Update(ctx context.Context, def *definitions.Machine, id string, set engine.Row) error {
	values := engine.Row{"id": id}
	for name, v := range set {
		values[name] = v
	}
	return b.s.Put(ctx, def, values)
}

func (b *backend) Delete(ctx context.Context, def *definitions.Machine, id string) error {
	return b.s.Delete(ctx, def, id)
}

func (b *backend) Rows(_ context.Context, def *definitions.Machine) (map[string]storetest.RawRow, error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	out := map[string]storetest.RawRow{}
	for id, r := range b.s.committed.all(def.Table.Name) {
		out[id] = storetest.RawRow{Status: statusOf(def, r), Version: r[def.Table.Version]}
	}
	return out, nil
}

func (b *backend) Journal(_ context.Context, def *definitions.Machine) (map[string][]storetest.RawEntry, error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	out := map[string][]storetest.RawEntry{}
	for k, entries := range b.s.committed.entries {
		if k.journal != def.Journal.Table || k.machine != def.Name {
			continue
		}
		for _, e := range entries {
			out[k.id] = append(out[k.id], storetest.RawEntry{Version: e.Version, Transition: e.Transition, From: e.From, To: e.To, Key: e.Key, Topic: e.topic})
		}
	}
	return out, nil
}

func (b *backend) Begin(ctx context.Context, form storetest.TxForm, _ sql.IsolationLevel) (*storetest.Tx, error) {
	if form != storetest.OwnTx {
		return nil, fmt.Errorf("no form %s", form)
	}
	tx, err := b.s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &storetest.Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
}

func (b *backend) InUse() int { return len(b.s.writer) }

// Reopen keeps the data, as the store has no life apart from it.
func (b *backend) Reopen(testing.TB) {}

func (b *backend) Loosen(testing.TB, *definitions.Machine) {}
