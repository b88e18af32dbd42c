package storetest

// The machines of the suite. Each has a table of its own, so that several can live
// in one database.

// order is the whole main job.
const order = `
machine: order
table: {name: orders}
fields:
  amount:      {type: int}
  currency:    {type: string, default: CNY}
  payment_ref: {type: string, nullable: true}
  paid_at:     {type: time, nullable: true}
initial: pending
create: {emit: order.created}
states:
  pending:
  paid:
  shipped:
  completed: {final: true}
  cancelled: {final: true}
  refunded:  {final: true}
transitions:
  pay:
    from: pending
    to: paid
    args: {payment_ref: string}
    set: {payment_ref: args.payment_ref, paid_at: now()}
    emit: order.paid
    duplicates: accept
  ship:     {from: paid, to: shipped}
  complete: {from: shipped, to: completed}
  cancel:   {from: [pending, paid], to: cancelled, args: {reason: {type: string, optional: true}}}
  refund:   {from: [paid, shipped], to: refunded, key: required}
`

// ticket has a cycle, and a transition that leaves it where it is.
const ticket = `
machine: ticket
table: {name: tickets}
fields:
  note: {type: string, default: ""}
initial: open
states:
  open:
  held:
  closed: {final: true}
transitions:
  hold:    {from: open, to: held, args: {by: string}}
  release: {from: held, to: open}
  touch:   {from: open, to: open, args: {note: string}, set: {note: args.note}}
  close:   {from: "*", to: closed}
`

// review says for each transition what a duplicate is.
const review = `
machine: review
table: {name: reviews}
initial: draft
states:
  draft:
  submitted:
  approved:
  published:
  rejected: {final: true}
  archived: {final: true}
transitions:
  submit:   {from: draft, to: submitted}
  approve:  {from: submitted, to: approved, duplicates: own}
  override: {from: [draft, submitted], to: approved, duplicates: own}
  undo:     {from: [approved, published], to: submitted}
  publish:  {from: approved, to: published, duplicates: accept}
  reject:   {from: [submitted, approved], to: rejected, duplicates: refuse}
  archive:  {from: published, to: archived}
`

// counter has an int id and an int status, with old values.
const counter = `
machine: counter
table: {name: counters, id: {column: number, type: int}, status: {column: stage, type: int}, version: revision}
initial: [fresh, later]
states:
  fresh:  {value: 10}
  later:  {value: 20, aliases: [21, 22]}
  active: {value: -3}
  done:   {value: 0, final: true}
transitions:
  start:  {from: [fresh, later], to: active}
  pause:  {from: active, to: later}
  finish: {from: [fresh, later, active], to: done}
`

// shipment has text values and aliases, and names that need care.
const shipment = `
machine: shipment
table: {name: shipments}
initial: WAIT_PICKUP
states:
  WAIT_PICKUP: {value: wait, aliases: [waiting, "WAIT PICKUP"]}
  运输中:       {value: "in transit", aliases: ["it's"]}
  2nd-try:     {value: "2nd%_\\ try"}
  delivered:   {final: true}
transitions:
  pick_up: {from: WAIT_PICKUP, to: 运输中}
  retry:   {from: 运输中, to: 2nd-try}
  deliver: {from: [运输中, 2nd-try], to: delivered}
`

// everything has a field of every type, twice.
const everything = `
machine: everything
table: {name: everythings}
fields:
  a_string:  {type: string}
  a_int:     {type: int}
  a_float:   {type: float}
  a_bool:    {type: bool}
  a_time:    {type: time}
  a_bytes:   {type: bytes}
  a_json:    {type: json}
  a_decimal: {type: decimal}
  o_string:  {type: string, nullable: true}
  o_int:     {type: int, nullable: true}
  o_float:   {type: float, nullable: true}
  o_bool:    {type: bool, nullable: true}
  o_time:    {type: time, nullable: true}
  o_bytes:   {type: bytes, nullable: true}
  o_json:    {type: json, nullable: true}
  o_decimal: {type: decimal, nullable: true}
initial: empty
states:
  empty:
  filled:
  cleared: {final: true}
transitions:
  fill:
    from: empty
    to: filled
    args: {s: "string?", i: "int?", f: "float?", b: "bool?", t: "time?", y: "bytes?", j: "json?", d: "decimal?"}
    set: {o_string: args.s, o_int: args.i, o_float: args.f, o_bool: args.b, o_time: args.t, o_bytes: args.y, o_json: args.j, o_decimal: args.d}
  clear:
    from: filled
    to: cleared
    set: {o_string: null, o_int: null, o_float: null, o_bool: null, o_time: null, o_bytes: null, o_json: null, o_decimal: null}
`

// defaults has a default of every type, literals in set, and a copied field.
const defaults = `
machine: preset
table: {name: presets}
fields:
  s: {type: string, default: "it's ? $1 %s"}
  e: {type: string, default: ""}
  i: {type: int, default: -7}
  f: {type: float, default: 0.1}
  b: {type: bool, default: true}
  t: {type: time, default: now()}
  d: {type: decimal, default: 12.500000}
  p: {type: string, nullable: true}
  q: {type: string, nullable: true}
  at: {type: time, nullable: true}
initial: new
states:
  new:
  used: {final: true}
transitions:
  use:
    from: new
    to: used
    set: {q: s, p: '"lit''eral"', i: 42, b: false, at: now()}
`

// bare has no journal.
const bare = `
machine: bare
table: {name: bares}
fields:
  note: {type: string, nullable: true}
initial: a
states:
  a:
  b:
  c: {final: true}
transitions:
  go:   {from: a, to: b, args: {note: "string?"}, set: {note: args.note}}
  back: {from: b, to: a}
  end:  {from: [a, b], to: c}
journal: false
`

// separate keeps its journal in a table of its own.
const separate = `
machine: separate
table: {name: separates}
initial: a
states:
  a:
  b: {final: true}
transitions:
  go: {from: a, to: b}
journal: {table: separate_log}
`
