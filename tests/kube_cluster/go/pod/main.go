// Command pod-probe is the only program of the test node's own image: the process that holds a pod's namespaces, and
// the few things that tests want to see done in a container. It needs no file but itself.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: pod-probe pause | serve ADDRESS TEXT | get URL | lookup NAME | burn`

const patience = 5 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(words []string) error {
	switch {
	case len(words) == 0 || words[0] == "pause":
		pause()
		return nil
	case words[0] == "serve" && len(words) == 3:
		return serve(words[1], words[2])
	case words[0] == "get" && len(words) == 2:
		return get(words[1])
	case words[0] == "lookup" && len(words) == 2:
		return lookup(words[1])
	case words[0] == "burn":
		burn()
		return nil
	}
	return fmt.Errorf("%s", usage)
}

// pause waits for the end, and reaps the children that a shared process namespace leaves to it.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}

func serve(address, text string) error {
	go pauseThenExit()
	return http.ListenAndServe(address, http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, text)
	}))
}

func pauseThenExit() {
	pause()
	os.Exit(0)
}

func get(url string) error {
	client := http.Client{Timeout: patience}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func lookup(name string) error {
	addresses, err := net.LookupHost(name)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(addresses, "\n"))
	return nil
}

// burn uses one core until the end.
func burn() {
	go pauseThenExit()
	for {
	}
}
