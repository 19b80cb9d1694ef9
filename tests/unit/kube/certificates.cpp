#include "kube/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace evictd::test {
namespace {

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("OpenSSL: ") + what);
}

template <class Write>
std::string pem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio{BIO_new(BIO_s_mem()), &BIO_free};
  must(write(bio.get()) == 1, "cannot write PEM");
  const char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem(X509* x509) {
  return pem([&](BIO* bio) { return PEM_write_bio_X509(bio, x509); });
}

std::string pem(EVP_PKEY* key) {
  return pem([&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::shared_ptr<EVP_PKEY> new_key() {
  std::shared_ptr<EVP_PKEY> key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  must(key != nullptr, "no key");
  return key;
}

void extend(X509* x509, int kind, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension{
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), &X509_EXTENSION_free};
  must(extension != nullptr, "bad extension");
  must(X509_add_ext(x509, extension.get(), -1) == 1, "cannot extend");
}

/// Valid for the time, without extensions and signature.
std::shared_ptr<X509> new_certificate(const std::string& name, EVP_PKEY* key, const Wanted& wanted) {
  std::shared_ptr<X509> x509{X509_new(), &X509_free};
  static int serial = 0;
  X509_set_version(x509.get(), 2);  // that is v3
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), wanted.valid_from.count());
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), wanted.valid_until.count());
  X509_set_pubkey(x509.get(), key);
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(x509.get()), "CN", MBSTRING_ASC,
                                  reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1,
       "bad name");
  return x509;
}

void sign(X509* x509, X509* issuer, EVP_PKEY* key) {
  X509_set_issuer_name(x509, X509_get_subject_name(issuer));
  must(X509_sign(x509, key, EVP_sha256()) != 0, "cannot sign");
}

}  // namespace

Authority::Authority(const std::string& name) : key_{new_key()}, x509_{new_certificate(name, key_.get(), {})} {
  extend(x509_.get(), NID_basic_constraints, "critical,CA:TRUE");
  extend(x509_.get(), NID_key_usage, "critical,keyCertSign");
  sign(x509_.get(), x509_.get(), key_.get());
  certificate_ = pem(x509_.get());
}

Issued Authority::issue(const Wanted& wanted) const {
  const auto key = new_key();
  const auto x509 = new_certificate(wanted.common_name, key.get(), wanted);
  if (!wanted.names.empty()) extend(x509.get(), NID_subject_alt_name, wanted.names);
  sign(x509.get(), x509_.get(), key_.get());
  return {.certificate = pem(x509.get()), .key = pem(key.get())};
}

}  // namespace evictd::test
