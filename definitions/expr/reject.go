package expr

import (
	"errors"
	"strings"
)

// A Rejection is the answer of an expression that has no value: an overflow, a
// division by zero, a value that does not fit. It rejects the whole call.
type Rejection struct {
	// Operation is the part of the expression that was being computed.
	Operation string
	// Reason says what is wrong with it.
	Reason string
	// Values lists what was read for it, such as "n is 7"; secret args without their
	// value.
	Values []string

	node *Node
	err  error
}

// Error names the operation, the reason and the values.
func (r *Rejection) Error() string {
	msg := r.Operation + ": " + r.Reason
	if len(r.Values) > 0 {
		msg += " (" + strings.Join(r.Values, ", ") + ")"
	}
	return msg
}

func rejectIf(n *Node, err error) *Rejection {
	if err == nil {
		return nil
	}
	return &Rejection{node: n, err: err}
}

// finish writes the texts, which need the whole input.
func (r *Rejection) finish(in *Input) {
	r.Operation = r.node.String()
	r.Reason = r.err.Error()
	r.Values = readings(r.node, in)
	if errors.Is(r.err, errStored) {
		r.Values = nil
	}
}
