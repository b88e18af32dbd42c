package engine

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Limits of what the journal stores, in bytes. They are the widths of its columns.
const (
	maxID    = 255
	maxKey   = 255
	maxActor = 255
)

// generatedKeyLen is "#" and 32 hex digits.
const generatedKeyLen = 33

// checkText refuses what no database stores alike.
func checkText(what, s string, maxBytes int) error {
	switch {
	case len(s) > maxBytes:
		return fmt.Errorf("%s has %d bytes, the limit is %d", what, len(s), maxBytes)
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("%s holds a NUL character", what)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", what)
	}
	return nil
}

// checkKey holds a caller's key against the forms reserved for derived and
// generated keys.
func checkKey(key string) error {
	if key == "" {
		return fmt.Errorf("the key is empty")
	}
	if err := checkText("the key", key, maxKey); err != nil {
		return err
	}
	switch key[0] {
	case '=':
		return fmt.Errorf("the key %q begins with \"=\", which is kept for keys derived from arguments", key)
	case '#':
		if _, err := hex.DecodeString(key[1:]); err != nil || len(key) != generatedKeyLen || strings.ToLower(key) != key {
			return fmt.Errorf("the key %q begins with \"#\", which is kept for keys that the engine generates", key)
		}
	}
	return nil
}

// generateKey returns "#" and 32 hex digits of 128 random bits.
func generateKey() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails: crypto/rand aborts the program instead
	var text [generatedKeyLen]byte
	text[0] = '#'
	hex.Encode(text[1:], raw[:])
	return string(text[:])
}

// ownValue copies a value that can be changed in place. A batch may read what it binds
// after the caller was told that the outcome is unknown.
func ownValue(v any) any {
	switch v := v.(type) {
	case []byte:
		return bytes.Clone(v)
	case json.RawMessage:
		return json.RawMessage(bytes.Clone(v))
	}
	return v
}

// coerceArgs checks values, in the order of the transition's args, and makes them
// canonical, and the engine's own, in place.
func (t *transitionRules) coerceArgs(values []any) error {
	if len(values) != len(t.def.Args) {
		return fmt.Errorf("%s takes %d args, got %d", t.def.Name, len(t.def.Args), len(values))
	}
	for i := range t.def.Args {
		a := &t.def.Args[i]
		v, err := expr.Coerce(a.Type, a.Scale, values[i])
		if err != nil {
			if a.Secret {
				return fmt.Errorf("arg %s: not a legal %s value", a.Name, a.Type)
			}
			return fmt.Errorf("arg %s: %w", a.Name, err)
		}
		if v == nil && !a.Optional {
			return fmt.Errorf("arg %s (%s) is missing", a.Name, a.Type)
		}
		values[i] = ownValue(v)
	}
	return nil
}

// order puts named arguments into the order of the definition.
func (t *transitionRules) order(args Args) ([]any, error) {
	values := make([]any, len(t.def.Args))
	for name, v := range args {
		i, ok := t.args[name]
		if !ok {
			return nil, fmt.Errorf("%s has no arg %q; it takes %s", t.def.Name, name, listOr(argNames(t), "none"))
		}
		values[i] = v
	}
	return values, nil
}

func argNames(t *transitionRules) []string {
	names := make([]string, len(t.def.Args))
	for i, a := range t.def.Args {
		names[i] = a.Name
	}
	return names
}

func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// hashed feeds length-prefixed parts to a hash, so that no two different lists
// of parts give the same bytes.
type hashed struct{ buf []byte }

func (h *hashed) part(b []byte) {
	h.buf = binary.AppendUvarint(h.buf, uint64(len(b)))
	h.buf = append(h.buf, b...)
}

func (h *hashed) value(name string, t expr.Type, v any, scratch []byte) []byte {
	h.part([]byte(name))
	scratch = expr.AppendCanonical(scratch[:0], t, v)
	h.part(scratch)
	return scratch
}

func (h *hashed) sum() string {
	sum := sha256.Sum256(h.buf)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// fingerprint identifies the request: transition and arguments, nothing else.
func (t *transitionRules) fingerprint(args []any) string {
	h := hashed{buf: make([]byte, 0, 256)}
	h.part([]byte(t.def.Name))
	var scratch [64]byte
	s := scratch[:]
	for i := range t.def.Args {
		if args[i] != nil {
			s = h.value(t.def.Args[i].Name, t.def.Args[i].Type, args[i], s)
		}
	}
	return h.sum()
}

// derivedKey is "=transition:" and the length-prefixed parts, or their SHA-256
// where that would pass the limit of a key.
func (t *transitionRules) derivedKey(args []any) string {
	text := make([]byte, 0, 64)
	text = append(text, '=')
	text = append(text, t.def.Name...)
	text = append(text, ':')
	head := len(text)
	for _, name := range t.def.Key.Args {
		i := t.args[name]
		text = expr.AppendCanonical(text, t.def.Args[i].Type, args[i])
	}
	if len(text) <= maxKey && utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 {
		return string(text)
	}
	sum := sha256.Sum256(text[head:])
	return string(text[:head]) + "#" + hex.EncodeToString(sum[:])
}

// argsJSON is what the journal keeps of the arguments: all that are given and
// not secret.
func (t *transitionRules) argsJSON(args []any) []byte {
	b := make([]byte, 0, 64)
	b = append(b, '{')
	for i := range t.def.Args {
		a := &t.def.Args[i]
		if args[i] == nil || a.Secret {
			continue
		}
		b = appendMember(b, a.Name, a.Type, args[i])
	}
	return append(b, '}')
}

func appendMember(b []byte, name string, t expr.Type, v any) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendJSONString(b, name)
	b = append(b, ':')
	return expr.AppendJSON(b, t, v)
}

func appendJSONString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // a valid Go string always marshals
		panic(err)
	}
	return append(b, quoted...)
}

// recordOf fills what the journal row of a call says.
func recordOf(o *callOptions, topic string) (Record, error) {
	r := Record{Actor: o.actor, Topic: topic}
	if err := checkText("the actor", o.actor, maxActor); err != nil {
		return r, err
	}
	if o.meta != nil {
		meta, err := json.Marshal(o.meta)
		if err != nil {
			return r, fmt.Errorf("the meta cannot be encoded as JSON: %w", err)
		}
		r.Meta = meta
	}
	return r, nil
}

// chooseKey settles which key is in force: derived, the caller's, or generated.
func (r *Record) chooseKey(o *callOptions, derived string, required bool) error {
	switch {
	case derived != "" && o.hasKey:
		return fmt.Errorf("the transition derives its key from its arguments: WithKey is not allowed")
	case derived != "":
		r.Key = derived
	case o.hasKey:
		if err := checkKey(o.key); err != nil {
			return err
		}
		r.Key = o.key
	case required:
		return fmt.Errorf("the transition needs a key: pass engine.WithKey")
	}
	generated := generateKey()
	r.Attempt = generated[1:]
	if r.Key == "" {
		r.Key, r.KeyOwn = generated, true
	}
	return nil
}

// jsonMember finds a member of a JSON object.
func jsonMember(object json.RawMessage, name string) (json.RawMessage, bool, error) {
	if len(object) == 0 {
		return nil, false, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, false, err
	}
	raw, ok := members[name]
	return raw, ok, nil
}
