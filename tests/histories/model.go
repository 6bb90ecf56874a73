// What the server must look like from outside: one copy of the data, changed by one operation at a time.
package main

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

type kind int

const (
	getText kind = iota
	setText
	swapText     // WATCH, GET, MULTI, SET, EXEC
	exchangeText // MULTI, GET, SET, EXEC
	increment
	getCounter
	push
	pop // LPOP, BLPOP
	readList
	changeAll    // MULTI, INCR, RPUSH, SET, EXEC
	readAll      // MULTI, GET, LRANGE, GET, EXEC
	changeScript // the same by EVAL
	readScript   // by EVAL_RO
	moveScript   // EVAL: LPOP, and what came becomes the text, if anything did
	kinds
)

var names = [kinds]string{"get", "set", "swap", "exchange", "incr", "count", "push", "pop", "list", "change all", "read all",
	"change by script", "read by script", "move by script"}

// An operation is on one family of keys: a text, a counter and a list that transactions change
// together.
type input struct {
	family int
	kind   kind
	value  string
}

// What was answered, as far as it was: the server was killed when an output is not known.
type output struct {
	known   bool
	text    string // swapText: what was seen before, which is known in any case
	list    string
	number  int64
	length  int64
	swapped bool
}

type state struct {
	text    string
	counter int64
	list    string // elements, each ended by a space
}

func (s state) length() int64 { return int64(strings.Count(s.list, " ")) }

// run is one operation on the one copy: the state after it, and what it answers.
func run(s state, in input, out output) (state, output) {
	answer := output{known: true}
	switch in.kind {
	case getText:
		answer.text = s.text
	case setText:
		s.text = in.value
	case swapText:
		answer.text = out.text
		// One that was refused may have been refused for a change that was taken back by another.
		answer.swapped = s.text == out.text && (out.swapped || !out.known)
		if answer.swapped {
			s.text = in.value
		}
	case exchangeText:
		answer.text = s.text
		s.text = in.value
	case increment:
		s.counter++
		answer.number = s.counter
	case getCounter:
		answer.number = s.counter
	case push:
		s.list += in.value + " "
		answer.length = s.length()
	case pop:
		if first, rest, found := strings.Cut(s.list, " "); found {
			answer.text, s.list = first, rest
		}
	case readList:
		answer.list = s.list
	case changeAll, changeScript:
		s.counter++
		s.list += in.value + " "
		s.text = in.value
		answer.number, answer.length = s.counter, s.length()
	case moveScript:
		if first, rest, found := strings.Cut(s.list, " "); found {
			answer.text, s.text, s.list = first, first, rest
		}
	case readAll, readScript:
		answer.text, answer.list, answer.number = s.text, s.list, s.counter
	}
	return s, answer
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, operation := range history {
			family := operation.Input.(input).family
			parts[family] = append(parts[family], operation)
		}
		var all [][]porcupine.Operation
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() interface{} { return state{} },
	Step: func(before, in, out interface{}) (bool, interface{}) {
		after, answer := run(before.(state), in.(input), out.(output))
		return !out.(output).known || answer == out.(output), after
	},
	DescribeOperation: func(in, out interface{}) string {
		i, o := in.(input), out.(output)
		if !o.known {
			return fmt.Sprintf("%s %s: ?", names[i.kind], i.value)
		}
		return fmt.Sprintf("%s %s: %q %q %d %d %v", names[i.kind], i.value, o.text, o.list, o.number,
			o.length, o.swapped)
	},
}
