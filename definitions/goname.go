package definitions

import (
	"go/token"
	"strings"
	"unicode"
	"unicode/utf8"
)

// initialisms are words that Go writes in capitals, as its linters have them.
var initialisms = map[string]bool{
	"acl": true, "api": true, "ascii": true, "cpu": true, "css": true, "dns": true, "eof": true,
	"guid": true, "html": true, "http": true, "https": true, "id": true, "ip": true, "json": true,
	"lhs": true, "qps": true, "ram": true, "rhs": true, "rpc": true, "sla": true, "smtp": true,
	"sql": true, "ssh": true, "tcp": true, "tls": true, "ttl": true, "udp": true, "ui": true,
	"uid": true, "uri": true, "url": true, "utf8": true, "uuid": true, "vm": true, "xml": true,
	"xmpp": true, "xsrf": true, "xss": true,
}

// GoName returns the exported Go identifier that a name of a definition becomes:
// payment_id is PaymentID, WAIT_BUYER_PAY is WaitBuyerPay. A name that would not
// be exported gets an X in front: 支付 is X支付, 2fa is X2fa.
//
// Two names that differ may have one GoName; the loader refuses that.
func GoName(name string) string {
	s := GoSuffix(name)
	if first, _ := utf8.DecodeRuneInString(s); !unicode.IsUpper(first) {
		return "X" + s
	}
	return s
}

// GoSuffix returns what a name becomes behind a prefix that is itself exported:
// the state 2fa-pending is State2faPending, 支付 is State支付. It is GoName
// without the X.
func GoSuffix(name string) string {
	if allCapitals(name) {
		name = strings.ToLower(name)
	}
	var b strings.Builder
	for _, word := range words(name) {
		b.WriteString(titled(word))
	}
	return b.String()
}

// allCapitals reports whether name has upper-case letters and no lower-case ones.
func allCapitals(name string) bool {
	upper := false
	for _, r := range name {
		if unicode.IsLower(r) {
			return false
		}
		upper = upper || unicode.IsUpper(r)
	}
	return upper
}

// words splits a name at _ and -, and where a capital follows a small letter.
func words(name string) []string {
	var list []string
	begin, last := 0, rune(0)
	for i, r := range name {
		if r == '_' || r == '-' || unicode.IsLower(last) && unicode.IsUpper(r) {
			list = append(list, strings.Trim(name[begin:i], "_-"))
			begin = i
		}
		last = r
	}
	return append(list, strings.Trim(name[begin:], "_-"))
}

func titled(word string) string {
	if initialisms[strings.ToLower(word)] {
		return strings.ToUpper(word)
	}
	first, size := utf8.DecodeRuneInString(word)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + word[size:]
}

// Package returns the name of the generated Go package: the machine's name
// without underscores. A name that Go cannot import, or would ignore, gets the
// suffix fsm: keywords, main, init and documentation.
func (m *Machine) Package() string {
	name := strings.ReplaceAll(m.Name, "_", "")
	switch {
	case token.IsKeyword(name), name == "main", name == "init", name == "documentation":
		return name + "fsm"
	}
	return name
}
