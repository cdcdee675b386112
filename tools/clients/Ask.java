import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/**
 * Sends requests with java.net.http. README.md of this folder describes the plan and the output. The
 * client requests HTTP/2 by Upgrade or ALPN, as by default.
 */
public class Ask {
  private static final HttpClient client = HttpClient.newHttpClient();

  private record Told(HttpResponse<?> response, byte[] body, long number) {}

  private final String name, action;
  private final HttpRequest request;

  private Ask(String line) throws IOException {
    String[] parts = line.split("\t");
    name = parts[0];
    action = parts[1];
    Duration patience = Duration.ofMillis(action.equals("abandon") ? 300 : 120000);
    HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(parts[3])).timeout(patience);
    for (String field : parts[4].split("&"))
      if (field.contains("=")) builder.header(field.split("=", 2)[0], field.split("=", 2)[1]);
    byte[] body = parts[5].equals("-") ? null : Files.readAllBytes(Path.of(parts[5]));
    if (body == null) builder.method(parts[2], BodyPublishers.noBody());
    else if (action.equals("chunked"))
      builder.method(parts[2], BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body)));
    else builder.method(parts[2], BodyPublishers.ofByteArray(body));
    request = builder.expectContinue(action.equals("expect")).build();
  }

  private Told whole() throws IOException, InterruptedException {
    HttpResponse<byte[]> found = client.send(request, BodyHandlers.ofByteArray());
    return new Told(found, found.body(), found.headers().firstValueAsLong("content-length").orElse(-1));
  }

  private Told inPieces() throws IOException, InterruptedException {
    HttpResponse<InputStream> found = client.send(request, BodyHandlers.ofInputStream());
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    byte[] piece = new byte[65536];
    long pieces = 0;
    try (InputStream input = found.body()) {
      for (int size; (size = input.read(piece)) >= 0; ) {
        body.write(piece, 0, size);
        ++pieces;
        if (action.equals("leave")) break;
      }
    }
    return new Told(found, body.toByteArray(), pieces);
  }

  private Told repeat(int inTurn, int crowd, int each, long pause) throws IOException, InterruptedException {
    Told first = whole();
    Set<String> different = new HashSet<>(Set.of(new String(first.body, StandardCharsets.UTF_8)));
    for (int i = 0; i < inTurn; ++i) {
      Thread.sleep(pause);
      different.add(new String(whole().body, StandardCharsets.UTF_8));
    }
    for (int i = 0; i < each; ++i) {
      IntStream.range(0, crowd)
          .mapToObj(j -> client.sendAsync(request, BodyHandlers.ofString()))
          .toList().stream()
          .map(CompletableFuture::join)
          .forEach(found -> different.add(found.body()));
    }
    return new Told(first.response, first.body, different.size());
  }

  private Told perform() throws IOException, InterruptedException {
    return switch (action) {
      case "stream", "leave" -> inPieces();
      case "many" -> repeat(40, 8, 5, 0);
      case "later" -> repeat(1, 0, 0, 21000);
      default -> whole();
    };
  }

  private static String version(HttpResponse<?> response) {
    return response.version() == HttpClient.Version.HTTP_2 ? "HTTP/2" : "HTTP/1.1";
  }

  public static void main(String[] arguments) throws IOException {
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      Ask one = new Ask(line);
      try {
        Told told = one.perform();
        Files.write(Path.of(arguments[1], one.name), told.body);
        System.out.println(String.join("\t", one.name, "" + told.response.statusCode(), version(told.response),
            told.response.headers().firstValue("content-type").orElse(""), "" + told.number));
      } catch (Exception error) {
        System.out.println(one.name + "\terror\t" + error.toString().replaceAll("\\s+", " "));
      }
    }
    System.exit(0);
  }
}
