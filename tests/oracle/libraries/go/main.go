// The assignors of Sarama, franz-go and kafka-go: a group a line in, what its leader would send a line out.
//
// client-assignors LIBRARY; the first line out is the library's version.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
)

// group is a JoinGroup response as its leader gets it, and the topics that the leader knows.
type group struct {
	Assignor string                `json:"assignor"`
	Topics   map[string]int32      `json:"topics"`
	Racks    map[string][][]string `json:"racks"`
	Members  []member              `json:"members"`
}

type member struct {
	ID           string  `json:"id"`
	InstanceID   *string `json:"instance_id"`
	Subscription []byte  `json:"subscription"`
}

// answer has partitions by member and topic; a member that the leader leaves out is not in it.
type answer map[string]map[string][]int32

type library struct {
	module string
	assign func(group) (answer, error)
}

var libraries = map[string]library{
	"franz-go": {"github.com/twmb/franz-go", franzGo},
	"kafka-go": {"github.com/segmentio/kafka-go", kafkaGo},
	"sarama":   {"github.com/IBM/sarama", sarama},
}

func main() {
	chosen, known := libraries[os.Args[1]]
	if !known {
		must(fmt.Errorf("no library is named %q", os.Args[1]))
	}
	out := json.NewEncoder(os.Stdout)
	must(out.Encode(map[string]string{"version": version(chosen.module)}))
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for in.More() {
		var asked group
		must(in.Decode(&asked))
		given, err := chosen.assign(asked)
		if err != nil {
			must(out.Encode(map[string]string{"error": err.Error()}))
			continue
		}
		must(out.Encode(map[string]any{"lists": lists(given)}))
	}
}

// lists orders topics by name: the wire has them in the order of a Go map.
func lists(given answer) map[string][][2]any {
	all := make(map[string][][2]any, len(given))
	for id, topics := range given {
		names := make([]string, 0, len(topics))
		for name := range topics {
			names = append(names, name)
		}
		sort.Strings(names)
		mine := [][2]any{}
		for _, name := range names {
			for _, partition := range topics[name] {
				mine = append(mine, [2]any{name, partition})
			}
		}
		all[id] = mine
	}
	return all
}

func version(module string) string {
	built, _ := debug.ReadBuildInfo()
	for _, each := range built.Deps {
		if each.Path == module {
			return each.Version
		}
	}
	return "unknown"
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
