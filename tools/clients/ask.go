// Sends requests with Go's net/http. README.md of this folder describes the plan and the output.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type request struct {
	name, action, method, url string
	fields                    [][2]string
	body                      []byte
}

type answer struct {
	status        int
	version, kind string
	body          []byte
	number        int64
}

// Hides the type of a reader, so that net/http cannot find its length.
type unmeasured struct{ io.Reader }

func read(line string) (request, error) {
	parts := strings.Split(line, "\t")
	one := request{name: parts[0], action: parts[1], method: parts[2], url: parts[3]}
	for _, field := range strings.Split(parts[4], "&") {
		if name, value, found := strings.Cut(field, "="); found {
			one.fields = append(one.fields, [2]string{name, value})
		}
	}
	var err error
	if parts[5] != "-" {
		one.body, err = os.ReadFile(parts[5])
	}
	return one, err
}

func (one request) open(ctx context.Context) (*http.Response, error) {
	var body io.Reader
	if one.body != nil {
		body = bytes.NewReader(one.body)
	}
	if one.action == "chunked" {
		body = unmeasured{body}
	}
	asked, err := http.NewRequestWithContext(ctx, one.method, one.url, body)
	if err != nil {
		return nil, err
	}
	for _, field := range one.fields {
		asked.Header.Set(field[0], field[1])
	}
	if one.action == "expect" {
		asked.Header.Set("Expect", "100-continue")
	}
	return http.DefaultClient.Do(asked)
}

func (one request) ask() (answer, error) {
	patience := 120 * time.Second
	if one.action == "abandon" {
		patience = 300 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := one.open(ctx)
	if err != nil {
		return answer{}, err
	}
	defer found.Body.Close()
	told := answer{status: found.StatusCode, version: found.Proto, kind: found.Header.Get("Content-Type"),
		number: found.ContentLength}
	if one.action != "stream" && one.action != "leave" {
		told.body, err = io.ReadAll(found.Body)
		return told, err
	}
	told.number = 0
	piece := make([]byte, 65536)
	for {
		size, err := found.Body.Read(piece)
		told.body = append(told.body, piece[:size]...)
		if size > 0 {
			told.number++
		}
		if err == io.EOF || (told.number == 1 && one.action == "leave") {
			return told, nil
		}
		if err != nil {
			return told, err
		}
	}
}

// Repeats the request in turn and concurrently, and counts different answers.
func (one request) repeat(inTurn, crowd, each int, pause time.Duration) (answer, error) {
	first, err := one.ask()
	different := map[string]bool{string(first.body): true}
	for i := 0; i < inTurn && err == nil; i++ {
		time.Sleep(pause)
		var next answer
		next, err = one.ask()
		different[string(next.body)] = true
	}
	results := make(chan string)
	for i := 0; i < crowd; i++ {
		go func() {
			for j := 0; j < each; j++ {
				next, err := one.ask()
				results <- fmt.Sprint(string(next.body), err)
			}
		}()
	}
	for i := 0; i < crowd*each; i++ {
		different[strings.TrimSuffix(<-results, "<nil>")] = true
	}
	first.number = int64(len(different))
	return first, err
}

func (one request) do() (answer, error) {
	switch one.action {
	case "many":
		return one.repeat(40, 8, 5, 0)
	case "later":
		return one.repeat(1, 0, 0, 21*time.Second)
	}
	return one.ask()
}

func main() {
	plan, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(plan)), "\n") {
		one, err := read(line)
		if err != nil {
			panic(err)
		}
		told, err := one.do()
		if err != nil {
			fmt.Printf("%s\terror\t%s\n", one.name, strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		if err := os.WriteFile(filepath.Join(os.Args[2], one.name), told.body, 0o600); err != nil {
			panic(err)
		}
		fmt.Printf("%s\t%d\t%s\t%s\t%d\n", one.name, told.status, told.version, told.kind, told.number)
	}
}
