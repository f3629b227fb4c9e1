// Package member has what every member in Go reads, waits for and prints, whatever its library; client.py prints the same.
package member

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Settings are those of members.py; what no group of these libraries needs is left out.
type Settings struct {
	Address   string  `json:"address"`
	GroupID   string  `json:"group_id"`
	ClientID  string  `json:"client_id"`
	Assignor  string  `json:"assignor"`
	SessionMS int     `json:"session_ms"`
	Instance  *string `json:"instance"`
	Protocol  string  `json:"protocol"`
	Commits   bool    `json:"commits"`
}

type call struct {
	Call       string  `json:"call"`
	MS         int64   `json:"ms"`
	MemberID   string  `json:"member_id"`
	Partitions [][]any `json:"partitions"`
}

// Asked returns the settings and topics of the command line.
func Asked() (Settings, []string) {
	var asked Settings
	Must(json.Unmarshal([]byte(os.Args[1]), &asked))
	return asked, os.Args[2:]
}

// Ready says that the member is about to poll; the context ends with a line on stdin, or with stdin.
func Ready() context.Context {
	fmt.Println(`{"call": "ready"}`)
	polling, stop := context.WithCancel(context.Background())
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		stop()
	}()
	return polling
}

// Tell prints a callback as one line.
func Tell(name string, memberID string, partitions map[string][]int32) {
	said := call{Call: name, MS: time.Now().UnixMilli(), MemberID: memberID, Partitions: [][]any{}}
	for topic, numbers := range partitions {
		for _, number := range numbers {
			said.Partitions = append(said.Partitions, []any{topic, number})
		}
	}
	line, err := json.Marshal(said)
	Must(err)
	fmt.Println(string(line))
}

// Must ends the process with an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
