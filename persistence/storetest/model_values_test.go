package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// ledger exercises what SQL and Go must compute alike.
const ledger = `
machine: ledger
table: {name: ledgers}
fields:
  n:     {type: int, default: 3}
  m:     {type: int, nullable: true}
  price: {type: decimal, default: 1.25}
  rate:  {type: float, default: 0.5}
  label: {type: string, default: base}
  flag:  {type: bool, default: false}
  at:    {type: time, nullable: true}
initial: [raw, kept]
states:
  raw:
  kept: {aliases: [stored]}
  high:
  low:
  end:
unique: [[label]]
transitions:
  weigh:
    from: [raw, kept]
    args: {by: int, f: "float?"}
    when: args.by != 7
    set: {n: "n * args.by - (m ?? 1)", m: n, rate: "rate * (args.f ?? 2.0)", flag: not flag, at: now()}
    to:
      - {state: high, when: n * args.by > 100 or flag}
      - {state: low, when: n * args.by >= 0}
      - {state: end, when: "n % args.by == 0"}
  price:
    key: [args.d, args.label]
    args: {d: decimal, label: string}
    set: {price: price + args.d}
    moves:
      - {from: [high, low], when: price + args.d > 2.0, to: kept, set: {label: args.label}}
      - {from: high, when: "args.label in ['x', 'y']", to: low}
      - {from: "*", when: "label == args.label and at != nil", to: end}
  mark:
    from: [high, low]
    to: end
    args: {label: string, m: "int?"}
    identity: [label, m]
    set: {label: args.label, m: args.m}
    duplicates: own
  drop: {from: "*", to: end, duplicates: accept}
  back: {from: end, to: raw, set: {m: null, n: 1}, key: required}
`

// value draws one of a few values of a type: few, so that requests repeat.
func value(rt *rapid.T, t expr.Type, name string) any {
	return rapid.SampledFrom(map[expr.Type][]any{
		expr.String:  {"x", "y", "base", "", "O'B?"},
		expr.Int:     {int64(0), int64(1), int64(2), int64(7), int64(-40), int64(60), int64(math.MaxInt64), int64(math.MinInt64)},
		expr.Float:   {0.0, 0.1, -1.5, 2.0, 1e300, 5e-324},
		expr.Bool:    {true, false},
		expr.Time:    {start, start.Add(time.Hour)},
		expr.Bytes:   {[]byte{}, []byte{0, 1}},
		expr.JSON:    {json.RawMessage(`{"a":1}`), json.RawMessage(`[]`)},
		expr.Decimal: {dec("0"), dec("1.5"), dec("-0.000001"), dec("999999999999.999999")},
	}[t]).Draw(rt, name)
}

func fatalIf(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// memoryBackend is the part of a Backend that the comparison needs.
type memoryBackend struct {
	Backend
	s *memory.Store
}

func (b *memoryBackend) Store() engine.Store { return b.s }

func (b *memoryBackend) Insert(ctx context.Context, def *definitions.Machine, row engine.Row) error {
	return b.s.Put(ctx, def, row)
}

func (b *memoryBackend) Delete(ctx context.Context, def *definitions.Machine, id string) error {
	return b.s.Delete(ctx, def, id)
}

func (b *memoryBackend) Begin(ctx context.Context, _ TxForm, _ sql.IsolationLevel) (*Tx, error) {
	tx, err := b.s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
}
