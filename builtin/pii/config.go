// Package pii finds personal data in what people, models and tools say, and
// denies, replaces, masks or hashes it: mobile and identity numbers of mainland
// China, bank cards, e-mail addresses, phone numbers, bank accounts and IP
// addresses. It knows how such numbers are built, check digits and all; it does
// not know names, addresses or anything else that only a reader understands.
package pii

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// config is the config of a [PII].
type config struct {
	Phone    text.Strategy `json:"phone"`
	IDCard   text.Strategy `json:"id_card"`
	BankCard text.Strategy `json:"bank_card"`
	Email    text.Strategy `json:"email"`
	E164     text.Strategy `json:"e164"`
	IBAN     text.Strategy `json:"iban"`
	IP       text.Strategy `json:"ip"`

	// OldIDCard looks also for identity numbers of 15 digits.
	OldIDCard bool `json:"id_card_15"`
	// ShortBankCard looks also for card numbers of 13 to 15 digits.
	ShortBankCard bool `json:"bank_card_13_15"`
	// Labels stand in the place of values, by kind.
	Labels map[string]string `json:"labels"`
	// Allow lists values, and patterns between slashes, that are left alone.
	Allow []string `json:"allow"`
	// SkipCode leaves fenced code blocks alone.
	SkipCode bool `json:"skip_code"`
	text.KeyConfig
}

// kind is one sort of personal data. Kinds are ranked: where two fit the same
// text, the first is meant.
type kind int

const (
	idCard kind = iota
	phone
	bankCard
	iban
	email
	e164
	ip
	kinds
)

// kindNames are the kinds as they stand in a config.
var kindNames = [kinds]string{"id_card", "phone", "bank_card", "iban", "email", "e164", "ip"}

// defaultLabels stand in the place of values.
var defaultLabels = [kinds]string{"[身份证号]", "[手机号]", "[银行卡号]", "[IBAN]", "[邮箱]", "[电话号码]", "[IP地址]"}

func (c *config) strategies() [kinds]text.Strategy {
	return [kinds]text.Strategy{c.IDCard, c.Phone, c.BankCard, c.IBAN, c.Email, c.E164, c.IP}
}

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [PII]. All of it is
// optional: no config means that all kinds but ip are replaced by labels. The
// error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := newFinder(config)
	return err
}

func readConfig(raw jsontext.Value) (*config, error) {
	c := &config{
		Phone: text.Redact, IDCard: text.Redact, BankCard: text.Redact, Email: text.Redact, E164: text.Redact, IBAN: text.Redact,
		IP: text.Off,
	}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	for k, s := range c.strategies() {
		if err := s.Check(); err != nil {
			return nil, &builtin.ConfigError{Pointer: "/" + kindNames[k], Err: err}
		}
	}
	return c, c.Validate()
}

// newFinder reads a config and prepares what it asks for.
func newFinder(raw jsontext.Value) (*finder, error) {
	c, err := readConfig(raw)
	if err != nil {
		return nil, err
	}
	f := &finder{
		config: c, with: c.strategies(), labels: defaultLabels,
	}
	if f.allow, err = text.NewAllow("/allow", c.Allow); err != nil {
		return nil, err
	}
	for name, label := range c.Labels {
		k := slices.Index(kindNames[:], name)
		if k < 0 {
			return nil, &builtin.ConfigError{
				Pointer: "/labels/" + escape(name),
				Err:     fmt.Errorf("unknown kind %q, one of %s%s", name, strings.Join(kindNames[:], ", "), protocol.DidYouMean(name, kindNames[:])),
			}
		}
		if err := text.CheckLabel(label); err != nil {
			return nil, &builtin.ConfigError{Pointer: "/labels/" + name, Err: err}
		}
		f.labels[k] = label
	}
	if name := f.labelWithMatch(); name != "" {
		return nil, &builtin.ConfigError{Pointer: "/labels/" + name, Err: fmt.Errorf("holds personal data itself")}
	}
	return f, nil
}

// labelWithMatch returns the name of a kind whose label would be found again.
func (f *finder) labelWithMatch() string {
	for k, label := range f.labels {
		if len(f.find(text.Fold(label).Text, text.String)) > 0 {
			return kindNames[k]
		}
	}
	return ""
}

// escape makes a token of a JSON Pointer.
func escape(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}
