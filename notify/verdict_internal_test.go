package notify

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
)

// rounded is a copy for the recipients a, b, … of the channel mail, of whom each
// stands as is said: what it was told in this attempt, in one before, or never.
func rounded(partial bool, stands ...Target) *round {
	r := &round{
		m:    &holdfast.Message{ID: "m", Destination: LanePrefix + "mail"},
		n:    Notification{List: "operators"},
		list: List{Name: "operators", Partial: partial},
		done: map[key]Target{},
	}
	for i, t := range stands {
		t.Channel, t.Address = "mail", string(rune('a'+i))+"@x"
		r.list.Recipients = append(r.list.Recipients, Recipient{Channel: t.Channel, Address: t.Address, Disabled: t.Name == "disabled"})
		if t.Attempts > 0 {
			r.done[key{t.Channel, t.Address}] = t
		} else if t.Cycle == 0 {
			r.targets = append(r.targets, t)
		}
	}
	return r
}

// NO-06, F1-99: a copy stands as its recipients do: who is left out does not count, and what
// is said is of the first who did not accept, of those who may yet accept before others.
func TestACopyStandsAsItsRecipientsDo(t *testing.T) {
	t.Parallel()
	accepted, refused, deferred := Target{Result: Accepted}, Target{Result: Refused, Code: "550"}, Target{Result: Deferred, Code: "451"}
	off := func(t Target) Target { t.Name = "disabled"; return t }
	before := func(t Target) Target { t.Attempts = 1; return t }
	second := func(t Target) Target { t.Code += " second"; return t }
	never := Target{Cycle: 1}
	for name, c := range map[string]struct {
		partial bool
		stands  []Target
		want    string // the code, and the text without what follows the colon; or the response
	}{
		"all":                              {false, []Target{accepted, before(accepted)}, `{"accepted":2}`},
		"one refused":                      {false, []Target{accepted, refused}, "550: 1 of 2 recipients refused"},
		"one refused of a partial list":    {true, []Target{accepted, refused}, `{"accepted":1,"refused":1}`},
		"all refused of a partial list":    {true, []Target{refused, second(refused)}, "550: 2 of 2 recipients refused"},
		"the first of those refused":       {false, []Target{refused, second(refused), accepted}, "550: 2 of 3 recipients refused"},
		"deferred before refused":          {false, []Target{refused, deferred}, "451: 1 of 2 recipients have not accepted yet"},
		"deferred, then refused":           {false, []Target{deferred, refused}, "451: 1 of 2 recipients have not accepted yet"},
		"the first of those deferred":      {false, []Target{deferred, second(deferred)}, "451: 2 of 2 recipients have not accepted yet"},
		"one was never asked":              {false, []Target{accepted, never}, "refused: 1 of 2 recipients have not accepted yet"},
		"disabled, and accepted before":    {false, []Target{off(before(accepted)), accepted}, `{"accepted":2}`},
		"disabled, and refused before":     {false, []Target{off(before(refused)), accepted}, `{"accepted":1}`},
		"disabled, and deferred before":    {false, []Target{off(before(deferred)), accepted}, `{"accepted":1}`},
		"disabled, and never asked":        {false, []Target{off(never), accepted}, `{"accepted":1}`},
		"refused before, and nothing else": {false, []Target{before(refused)}, "550: 1 of 1 recipients refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receipt, err := rounded(c.partial, c.stands...).verdict()
			got := string(receipt.Response)
			if f, ok := errors.AsType[*holdfast.Failure](err); ok {
				text, _, _ := strings.Cut(f.Err.Error(), ":")
				got = f.Code + ": " + text
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// NO-12: what a server said is told without the address, and never as nothing.
func TestWhatARecipientsServerSaid(t *testing.T) {
	t.Parallel()
	for want, target := range map[string]Target{
		"550 no … here":       {Address: "a@x", Code: "550", Text: "no a@x here"},
		"550":                 {Code: "550"},
		"timeout":             {Code: "timeout", Text: "timeout"},
		"only words":          {Text: "only words"},
		"no reason was given": {Address: "a@x"},
	} {
		if got := said(target); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// NO-06: why there is nobody to ask.
func TestWhyThereIsNobody(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*round{
		`list "operators" has no recipients`:                                 rounded(false),
		`list "operators" has no enabled recipient on channel mail any more`: rounded(false, Target{Name: "disabled"}),
	} {
		if f, ok := errors.AsType[*holdfast.Failure](r.nobody()); !ok || f.Err.Error() != want || f.Code != "no_recipients" || f.Outcome != holdfast.Permanent {
			t.Errorf("got %v, want %s", f, want)
		}
	}
}

// An adapter that tells of more recipients than it was given is not believed.
func TestAPartNamesWhoWasAsked(t *testing.T) {
	t.Parallel()
	r := rounded(false, Target{Cycle: 1})
	s := &sending{round: r, ctx: t.Context(), channel: "mail", to: r.list.Recipients, written: []bool{false}}
	if !s.known(Part{Ends: map[int]Delivery{-1: {Outcome: Accepted}, 1: {Outcome: Accepted}, 0: {Outcome: Waiting}}}) || len(r.targets) != 0 {
		t.Errorf("got %v", r.targets)
	}
}
